ALTER TABLE posts ADD COLUMN hidden_at BIGINT;
ALTER TABLE threads ADD COLUMN hidden_at BIGINT;
ALTER TABLE threads ADD COLUMN closed_at BIGINT;
CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, forum TEXT NOT NULL, at BIGINT NOT NULL, actor TEXT NOT NULL, what TEXT NOT NULL, target TEXT NOT NULL,
  before TEXT NOT NULL, after TEXT NOT NULL, reason TEXT NOT NULL, motion_id BIGINT, undoes BIGINT);
CREATE INDEX orders_by_target ON orders (forum, what, target);
PRAGMA user_version = 7;
