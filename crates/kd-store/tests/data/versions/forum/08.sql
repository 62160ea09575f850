CREATE INDEX mentions_unseen ON mentions (name, post_id) WHERE seen_at IS NULL;
PRAGMA user_version = 8;
