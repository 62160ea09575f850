CREATE TABLE notes (forum TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (forum, name));
CREATE TABLE profiles (forum TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (forum, name));
CREATE TABLE mentions (forum TEXT NOT NULL, name TEXT NOT NULL, post_id BIGINT NOT NULL REFERENCES posts (id), seen_at BIGINT,
  PRIMARY KEY (forum, name, post_id));
CREATE INDEX mentions_by_post ON mentions (post_id);
CREATE TABLE charters (forum TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL, updated_at BIGINT NOT NULL);
PRAGMA user_version = 5;
