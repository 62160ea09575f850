ALTER TABLE posts ADD COLUMN erased_at BIGINT;
CREATE TABLE erasures (id INTEGER PRIMARY KEY AUTOINCREMENT, forum TEXT NOT NULL, at BIGINT NOT NULL, actor TEXT NOT NULL, what TEXT NOT NULL, item BIGINT NOT NULL,
  purged BIGINT NOT NULL);
CREATE INDEX erasures_by_item ON erasures (what, item);
PRAGMA user_version = 11;
