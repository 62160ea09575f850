CREATE TABLE chains (forum TEXT PRIMARY KEY, chain TEXT NOT NULL, commitment TEXT NOT NULL, after_post BIGINT NOT NULL);
CREATE TABLE links (cycle_id BIGINT PRIMARY KEY, chain TEXT NOT NULL, number BIGINT NOT NULL, origin TEXT NOT NULL, commitment TEXT,
  after_post BIGINT NOT NULL, through_post BIGINT NOT NULL, posts TEXT NOT NULL, previous TEXT NOT NULL, next TEXT NOT NULL, secret TEXT,
  void TEXT, renewed TEXT, seal TEXT, UNIQUE (chain, number));
CREATE TABLE first_words (post_id BIGINT PRIMARY KEY, digest TEXT NOT NULL);
PRAGMA user_version = 6;
