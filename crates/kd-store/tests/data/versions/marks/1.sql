CREATE TABLE marks (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    thread TEXT NOT NULL,
    message INTEGER NOT NULL,
    current INTEGER NOT NULL,
    mark TEXT NOT NULL
);
CREATE INDEX marks_of ON marks (project, thread, message);
PRAGMA user_version = 1;
INSERT INTO marks (project, thread, message, current, mark) VALUES ('app-00', 'kept', 6, 1, '{"v": 1, "project": "app-00", "thread": "kept", "message": 6, "at": "2026-11-23T08:00:00Z", "by": "user", "kind": "yes-no", "protocol": "council", "members": [{"name": "ann", "model": "m1", "key": "yes", "backs": true, "confidence": 0.8}], "winner": "yes", "credit": 1.0, "answer": "yes", "calls": 4, "usd": 0.5}');
