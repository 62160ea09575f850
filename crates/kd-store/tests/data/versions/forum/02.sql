CREATE TABLE identity (id TEXT NOT NULL);
PRAGMA user_version = 2;
