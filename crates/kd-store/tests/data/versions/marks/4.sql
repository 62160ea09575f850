CREATE TABLE marks (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    thread TEXT NOT NULL,
    message INTEGER NOT NULL,
    current INTEGER NOT NULL,
    mark TEXT NOT NULL
);
CREATE INDEX marks_of ON marks (project, thread, message);
ALTER TABLE marks ADD COLUMN kind TEXT;
ALTER TABLE marks ADD COLUMN council TEXT;
ALTER TABLE marks ADD COLUMN marked_us INTEGER;
CREATE INDEX marks_of_kind ON marks (kind, marked_us, id) WHERE current = 1;
CREATE INDEX marks_of_council ON marks (council, marked_us, id) WHERE current = 1;
CREATE TABLE sums (
    kind TEXT NOT NULL,
    model TEXT NOT NULL,
    right INTEGER NOT NULL,
    questions INTEGER NOT NULL,
    PRIMARY KEY (kind, model)
) WITHOUT ROWID;
ALTER TABLE marks ADD COLUMN brief BLOB;
DROP INDEX marks_of_kind;
DROP INDEX marks_of_council;
CREATE INDEX marks_of_kind ON marks (kind, marked_us, id, brief) WHERE current = 1;
CREATE INDEX marks_of_council ON marks (council, marked_us, id, brief) WHERE current = 1;
PRAGMA user_version = 4;
INSERT INTO marks (project, thread, message, current, mark, kind, council, marked_us) VALUES ('app-00', 'kept', 6, 1, '{"v": 1, "project": "app-00", "thread": "kept", "message": 6, "at": "2026-11-23T08:00:00Z", "by": "user", "kind": "yes-no", "protocol": "council", "members": [{"name": "ann", "model": "m1", "key": "yes", "backs": true, "confidence": 0.8}], "winner": "yes", "credit": 1.0, "answer": "yes", "calls": 4, "usd": 0.5}', 'yes-no', 'yes-no
council
m1', 1795420800000000);
INSERT INTO sums VALUES ('yes-no', 'm1', 1, 1);
