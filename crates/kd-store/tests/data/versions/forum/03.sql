CREATE TABLE members (forum TEXT NOT NULL, name TEXT NOT NULL, skeleton TEXT NOT NULL, kind TEXT NOT NULL, proof TEXT NOT NULL,
  role TEXT NOT NULL, status TEXT NOT NULL, votes BIGINT NOT NULL, joined_at BIGINT NOT NULL, left_at BIGINT, PRIMARY KEY (forum, name));
CREATE UNIQUE INDEX members_by_look ON members (forum, skeleton);
CREATE TABLE electorate (motion_id BIGINT NOT NULL REFERENCES motions (id), name TEXT NOT NULL, PRIMARY KEY (motion_id, name));
CREATE TABLE pace (forum TEXT NOT NULL, account TEXT NOT NULL, minute_at BIGINT NOT NULL, in_minute BIGINT NOT NULL,
  day_at BIGINT NOT NULL, in_day BIGINT NOT NULL, PRIMARY KEY (forum, account));
PRAGMA user_version = 3;
