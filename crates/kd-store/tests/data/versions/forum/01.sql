CREATE TABLE threads (id INTEGER PRIMARY KEY AUTOINCREMENT, forum TEXT NOT NULL, title TEXT NOT NULL, author TEXT NOT NULL, created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL, post_count BIGINT NOT NULL, last_author TEXT NOT NULL, last_post_id BIGINT NOT NULL, deleted_at BIGINT);
CREATE INDEX threads_by_activity ON threads (forum, last_post_id);
CREATE TABLE posts (id INTEGER PRIMARY KEY AUTOINCREMENT, thread_id BIGINT NOT NULL REFERENCES threads (id), author TEXT NOT NULL, body TEXT NOT NULL,
  quote_post_id BIGINT REFERENCES posts (id), created_at BIGINT NOT NULL, edited_at BIGINT, deleted_at BIGINT, run_id BIGINT, call_no BIGINT);
CREATE INDEX posts_by_thread ON posts (thread_id, id);
CREATE UNIQUE INDEX posts_once ON posts (run_id, call_no) WHERE run_id IS NOT NULL;
CREATE VIRTUAL TABLE words USING fts5 (title, body, author, content='', contentless_delete=1, tokenize='unicode61');
CREATE TABLE agents (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, energy DOUBLE PRECISION NOT NULL, tokens BIGINT NOT NULL, turns BIGINT NOT NULL,
  skipped BIGINT NOT NULL, last_run_at BIGINT);
CREATE TABLE seen (agent_id BIGINT NOT NULL, thread_id BIGINT NOT NULL, post_id BIGINT NOT NULL, PRIMARY KEY (agent_id, thread_id));
CREATE TABLE marks (agent_id BIGINT NOT NULL, forum TEXT NOT NULL, post_id BIGINT NOT NULL, PRIMARY KEY (agent_id, forum));
CREATE TABLE unread (agent_id BIGINT NOT NULL, forum TEXT NOT NULL, thread_id BIGINT NOT NULL, PRIMARY KEY (agent_id, forum, thread_id));
CREATE TABLE cycles (id INTEGER PRIMARY KEY AUTOINCREMENT, forum TEXT NOT NULL, number BIGINT NOT NULL, cards TEXT NOT NULL, plan TEXT NOT NULL, started_at BIGINT NOT NULL,
  ended_at BIGINT, interval_ms BIGINT, UNIQUE (forum, number));
CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, cycle_id BIGINT, forum TEXT NOT NULL, agent TEXT NOT NULL, started_at BIGINT NOT NULL, ended_at BIGINT,
  outcome TEXT NOT NULL, deeds TEXT NOT NULL, reason TEXT, claim TEXT, claim_agrees BIGINT, calls BIGINT NOT NULL, tokens BIGINT NOT NULL);
CREATE UNIQUE INDEX runs_once ON runs (cycle_id, agent) WHERE cycle_id IS NOT NULL;
CREATE INDEX runs_by_agent ON runs (agent, id);
CREATE TABLE motions (id INTEGER PRIMARY KEY AUTOINCREMENT, forum TEXT NOT NULL, kind TEXT NOT NULL, key TEXT, value TEXT, before TEXT, title TEXT NOT NULL,
  reason TEXT NOT NULL, proposer TEXT NOT NULL, created_at BIGINT NOT NULL, closes_after BIGINT NOT NULL, state TEXT NOT NULL,
  outcome TEXT NOT NULL, thread_id BIGINT);
CREATE INDEX motions_by_state ON motions (forum, state);
CREATE TABLE votes (motion_id BIGINT NOT NULL REFERENCES motions (id), agent TEXT NOT NULL, choice TEXT NOT NULL, reason TEXT NOT NULL,
  at BIGINT NOT NULL, PRIMARY KEY (motion_id, agent));
CREATE TABLE settings (forum TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, motion_id BIGINT NOT NULL, PRIMARY KEY (forum, key));
CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, forum TEXT NOT NULL, line TEXT NOT NULL);
CREATE INDEX log_by_forum ON log (forum, id);
PRAGMA user_version = 1;
