CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    method TEXT NOT NULL,
    source TEXT NOT NULL,
    output TEXT,
    command TEXT NOT NULL,
    fresh INTEGER NOT NULL,
    created INTEGER NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0,
    run INTEGER NOT NULL DEFAULT 0,
    millis INTEGER NOT NULL DEFAULT 0,
    calls INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    pico_usd INTEGER NOT NULL DEFAULT 0,
    certainty TEXT NOT NULL DEFAULT 'exact'
) WITHOUT ROWID;
CREATE INDEX batches_key ON batches (key, created);
CREATE TABLE jobs (
    batch TEXT NOT NULL,
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    question TEXT NOT NULL,
    key TEXT NOT NULL,
    twin INTEGER,
    state INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    run INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    PRIMARY KEY (batch, place)
);
CREATE INDEX jobs_state ON jobs (batch, state, due, place);
CREATE INDEX jobs_twin ON jobs (batch, twin) WHERE twin IS NOT NULL;
CREATE TABLE results (
    batch TEXT NOT NULL,
    place INTEGER NOT NULL,
    key TEXT NOT NULL,
    kept INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (batch, place)
);
CREATE INDEX results_kept ON results (key) WHERE kept = 1;
CREATE TABLE requests (
    batch TEXT NOT NULL,
    run INTEGER NOT NULL,
    request INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    pico_usd INTEGER NOT NULL,
    PRIMARY KEY (batch, run, request)
) WITHOUT ROWID;
INSERT INTO batches (id, key, method, source, command, fresh, created) VALUES ('batch-1', 'k', 'ask', 'kept.jsonl', 'kd batch run kept.jsonl', 0, 0);
INSERT INTO jobs (batch, place, id, question, key, state) VALUES ('batch-1', 1, 'q1', 'One?', 'a', 0);
PRAGMA user_version = 1;
