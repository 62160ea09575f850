CREATE TABLE imports (digest TEXT PRIMARY KEY, at BIGINT NOT NULL);
PRAGMA user_version = 10;
