CREATE TABLE rules (forum TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (forum, key));
PRAGMA user_version = 9;
