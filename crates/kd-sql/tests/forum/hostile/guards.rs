//! Guards: what no call may do, and what the tables contain after a run.

use super::*;

impl World<'_> {
    /// Checks that the caller was allowed to do what it just did, at this rate.
    pub(super) fn check_done(
        &mut self,
        (caller, who): (&Caller, Option<&str>),
        (tool, thread): (&str, Option<i64>),
        settings: &Settings,
    ) {
        let name = caller.name.as_str();
        let stranger = name.starts_with("guest-") || name.starts_with("sock-");
        let is_deed = DEEDS.contains(&tool);
        if who.is_none() {
            let may = match stranger {
                true => !["vote", "propose"].contains(&tool),
                false => !is_deed && !["remember", "recall"].contains(&tool),
            };
            assert!(may, "an impostor: {caller:?} {tool}");
        }
        if let (true, Some(thread)) = (tool == "reply_to_thread", thread) {
            let hidden = self.store.thread(thread, 0, 1).unwrap().0.hidden_at;
            assert!(hidden.is_none(), "{name} replies in hidden thread {thread}");
        }
        if is_deed && caller.run.is_none() {
            let account = if stranger { "guest" } else { name };
            let second = self.second;
            let paced = self.ledger.paced.entry(account.to_owned());
            let (began, count, all) = paced.or_insert((second, 0, 0));
            if second - *began >= 60 {
                (*began, *count) = (second, 0);
            }
            (*count, *all) = (*count + 1, *all + 1);
            assert!(
                *count <= settings.posts_per_minute && *all <= settings.posts_per_day,
                "too fast: {account} {count} {all}"
            );
        }
    }

    /// Checks that a text for an agent contains nothing of hidden posts.
    pub(super) fn check_unseen(&self, text: &str) {
        let mut hidden = self.ledger.hidden.iter();
        let seen = hidden.find(|(_, word)| text.contains(word));
        assert!(seen.is_none(), "hidden words are shown: {seen:?} in {text}");
    }

    /// Checks a motion that was just proposed.
    pub(super) fn check_moved(&mut self, who: &str, id: i64) {
        let cycle = self.store.last_cycle(&self.forum).unwrap();
        let moved = self.ledger.moved.entry((cycle, who.to_owned()));
        let moved = moved.or_insert(0);
        *moved += 1;
        assert!(*moved <= 1, "{who} moved {moved} motions in a cycle");
        let open = self.store.motions(&self.forum, 100).unwrap();
        let (new, others): (Vec<_>, Vec<_>) = open
            .into_iter()
            .filter(|m| m.state == MotionState::Open)
            .partition(|m| m.id == id);
        let new = &new[0];
        assert!(others.iter().filter(|m| m.proposer == who).count() <= 1);
        let wants = |m: &Motion| match m.kind {
            MotionKind::Text => (m.kind, None, Some(m.title.clone())),
            _ => (m.kind, m.key.clone(), m.value.clone()),
        };
        let same = others.iter().find(|m| wants(m) == wants(new));
        assert!(same.is_none(), "equal motions: {same:?} {new:?}");
        let (key, value) = (new.key.as_deref(), new.value.as_deref());
        let about = match new.kind {
            MotionKind::Role => key,
            MotionKind::Ban | MotionKind::Unban => value,
            _ => None,
        };
        assert!(
            about != Some(KING) && (new.kind != MotionKind::Role || value != Some("owner")),
            "a motion about the user or an owner: {new:?}"
        );
        let sets = new.kind == MotionKind::Set;
        assert!(
            !sets || key.is_none_or(|key| !FOR_PEOPLE.contains(&key)),
            "a motion about motions: {new:?}"
        );
    }

    /// Checks that only the user can read the secret of the next draw, and that it is new.
    pub(super) fn check_secret(&mut self, file: &Path, state: &Path) {
        let db = rusqlite::Connection::open(file).unwrap();
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let bytes = std::fs::read(file).unwrap();
        let shown = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let sql = "SELECT chain FROM chains WHERE forum = ?1";
        let chain: String = db.query_row(sql, [&self.forum], |row| row.get(0)).unwrap();
        let mut found = 0;
        for kept in std::fs::read_dir(state.join("forums")).unwrap() {
            let path = kept.unwrap().path();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
            let kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let secrets = kept["secrets"].as_array().unwrap().iter();
            let ours = secrets.filter(|secret| secret["chain"] == chain.as_str());
            let Some(next) = ours.max_by_key(|secret| secret["number"].as_i64()) else {
                continue;
            };
            found += 1;
            let secret = next["secret"].as_str().unwrap().to_owned();
            assert!(!shown.contains(&secret), "the database has the secret");
            assert!(self.ledger.secrets.insert(secret), "an old secret");
        }
        assert_eq!(found, 1);
    }
}

/// Checks the tables directly: nothing of the honest members has changed, and nothing is in their names that they did
/// not do.
pub(super) fn check(world: &mut World<'_>, file: &Path, configured: &Settings) {
    let forum = world.forum.clone();
    let db = rusqlite::Connection::open(file).unwrap();
    let strings = |sql: &str| -> Vec<Vec<String>> {
        let mut rows = db.prepare(sql).unwrap();
        let columns = rows.column_count();
        let rows = rows.query_map([&forum], |row| {
            (0..columns)
                .map(|i| {
                    Ok(match row.get_ref(i)? {
                        rusqlite::types::ValueRef::Null => String::new(),
                        rusqlite::types::ValueRef::Integer(n) => n.to_string(),
                        value => value.as_str().unwrap_or_default().to_owned(),
                    })
                })
                .collect()
        });
        rows.unwrap().map(Result::unwrap).collect()
    };
    let ledger = &world.ledger;
    let ours: BTreeSet<&str> = HONEST.iter().copied().chain([KING]).collect();
    let theirs: BTreeSet<&str> = [GULLIBLE, "late", CLERK]
        .into_iter()
        .chain(HOSTILE)
        .collect();
    let mut honest_posts = BTreeMap::new();
    for row in strings(
        "SELECT p.id, p.author, p.body, coalesce(p.hidden_at, ''), coalesce(p.deleted_at, '') FROM posts p JOIN threads t ON t.id = p.thread_id WHERE t.forum = ?1",
    ) {
        let (author, body) = (row[1].as_str(), row[2].clone());
        if ours.contains(author) {
            assert_eq!(
                (row[3].as_str(), row[4].as_str()),
                ("", ""),
                "hidden or deleted: {row:?}"
            );
            honest_posts.insert(row[0].parse::<i64>().unwrap(), (author.to_owned(), body));
        } else {
            assert!(
                theirs.contains(author)
                    || author.starts_with("guest-")
                    || author.starts_with("sock-"),
                "{row:?}"
            );
        }
    }
    assert_eq!(honest_posts, ledger.posts);
    assert!(strings("SELECT id FROM threads WHERE forum = ?1 AND (closed_at IS NOT NULL OR deleted_at IS NOT NULL) AND author IN ('ada', 'bob', 'cy', 'dee', 'fay', 'king')").is_empty());
    let votes: BTreeMap<(i64, String), String> = strings("SELECT v.motion_id, v.agent, v.choice FROM votes v JOIN motions m ON m.id = v.motion_id WHERE m.forum = ?1")
        .into_iter()
        .map(|mut row| ((row[0].parse().unwrap(), row.remove(1)), row.remove(1)))
        .collect();
    assert_eq!(votes, ledger.votes, "a vote that nobody gave");
    for row in strings("SELECT name, role, status, votes, proof FROM members WHERE forum = ?1") {
        let voter = world.registered.contains(&row[0]);
        let expected = match row[0].as_str() {
            KING => ["owner", "active", "0"],
            _ if voter => ["agent", "active", "1"],
            _ => ["guest", "active", "0"],
        };
        assert_eq!(row[1..4], expected, "{row:?}");
        assert!(
            voter || ["king", "guest"].contains(&row[0].as_str()) || row[0].starts_with("sock-"),
            "{row:?}"
        );
    }
    // All settings and orders come from honest motions.
    let honest = |id: &str| ledger.wanted.get(&id.parse().unwrap_or(0)) == Some(&true);
    for row in strings("SELECT motion_id, key, value FROM settings WHERE forum = ?1") {
        assert!(honest(&row[0]), "{row:?}");
    }
    for row in strings("SELECT coalesce(motion_id, ''), what, target FROM orders WHERE forum = ?1")
    {
        assert!(
            honest(&row[0]) && ["post", "setting"].contains(&row[1].as_str()),
            "{row:?}"
        );
    }
    for row in strings("SELECT name, body FROM notes WHERE forum = ?1") {
        if let Some(note) = ledger.notes.get(&row[0]) {
            assert_eq!(*note, row[1]);
        } else {
            assert!(!ours.contains(row[0].as_str()), "{row:?}");
        }
    }
    assert!(strings("SELECT name FROM profiles WHERE forum = ?1 AND name IN ('ada', 'bob', 'cy', 'dee', 'fay', 'king')").is_empty());
    // Turns and spending: one visit per cycle in the drawn order, and no call above the limit.
    let most = configured.max_tool_calls as usize;
    for row in strings("SELECT agent, deeds FROM runs WHERE forum = ?1") {
        let deeds: Vec<Value> = serde_json::from_str(&row[1]).unwrap();
        assert!(deeds.len() <= most, "{row:?}");
    }
    for cycle in world.store.cycles(&forum, 100).unwrap() {
        let turns: Vec<&str> = cycle.plan.turns.iter().map(|t| t.agent.as_str()).collect();
        let runs = world.store.runs_of(cycle.id).unwrap();
        let ran: Vec<&str> = runs.iter().map(|run| run.agent.as_str()).collect();
        assert_eq!(ran, turns);
    }
    let audited = world.store.audit(&forum, &mut |_| {}).unwrap();
    assert_eq!(
        (audited.cycles, audited.committed, audited.faults),
        (4, 4, Vec::new())
    );
}
