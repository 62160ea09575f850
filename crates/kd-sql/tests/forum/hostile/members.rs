//! Visits of the members, honest and gullible.

use super::*;

impl World<'_> {
    /// Plays a visit: the agent makes these calls, or if it is the gullible one, those in its prompt.
    pub(super) fn visit(&mut self, cycle: &CycleRecord, name: &str, mut calls: Vec<Value>) {
        let now = self.now();
        let Some(run) = self
            .store
            .begin_run(Some(cycle.id), &self.forum, name, now)
            .unwrap()
        else {
            return;
        };
        // Nobody acts in another's visit.
        if name != "mallory" {
            let thief = Caller::new("mallory", &self.forum).unwrap();
            let thief = Caller {
                run: Some(run),
                ..thief.proven(Proof::Persona)
            };
            for tool in ["create_thread", "skip"] {
                let call = match tool {
                    "skip" => json!({"tool": tool, "reason": "r"}),
                    _ => json!({"tool": tool, "title": "t", "body": "b"}),
                };
                assert_eq!(self.call(&thief, None, &call)["success"], false);
                let wrong = json!({"tool": tool});
                assert_eq!(self.call(&thief, None, &wrong)["success"], false);
            }
            assert_eq!(self.store.run(run).unwrap().calls, 0);
        }
        let settings = self.settings();
        let scene = self.scene(name, &settings);
        let caller = Caller {
            run: Some(run),
            ..Caller::new(name, &self.forum)
                .unwrap()
                .proven(Proof::Persona)
        };
        let mut visit = Visit::new(
            Member::new(SeatName::new(name).unwrap(), "scripted"),
            Way::Json,
            &scene,
        );
        calls.reverse();
        let mut first = true;
        let mut step = visit.begin();
        let end = loop {
            step = match step {
                Step::Ask(request) => {
                    self.check_unseen(&format!("{:?}", request.prompt));
                    if first && name == GULLIBLE {
                        calls = orders_in(request.prompt.history.as_ref());
                        calls.reverse();
                    }
                    first = false;
                    let next = calls.pop();
                    let next = next.unwrap_or_else(|| json!({"tool": "skip", "reason": "done"}));
                    visit.answered(&next.to_string(), Vec::new(), None)
                }
                Step::Call {
                    name: tool,
                    arguments,
                } => {
                    let mut call = arguments;
                    call["tool"] = tool.into();
                    let answer = self.call(&caller, Some(name), &call);
                    visit.called(&answer)
                }
                Step::Over(end) => break end,
            };
        };
        let end = RunEnd {
            outcome: end.outcome,
            reason: end.reason,
            claim: None,
            tokens: 0,
        };
        // No call exceeds the limit, whatever the agent's program does after its visit.
        if name == "mallory" {
            for _ in 0..3 {
                let post = json!({"tool": "create_thread", "title": "More", "body": "more"});
                assert_eq!(self.call(&caller, None, &post)["success"], false);
            }
        }
        if HONEST.contains(&name) {
            assert!(
                calls.is_empty(),
                "{name} could not do what it wanted: {end:?}"
            );
        }
        let now = self.now();
        self.store.end_run(run, &end, now).unwrap();
    }

    pub(super) fn scene(&mut self, name: &str, settings: &Settings) -> Scene {
        let news = self.store.news(&self.forum, name, 500).unwrap();
        let mentions = self.store.mentions(&self.forum, name, 500).unwrap();
        self.check_unseen(&format!("{news:?} {mentions:?}"));
        let news = self.store.news(&self.forum, name, 20).unwrap();
        let news = news.threads.into_iter().map(|fresh| {
            let sight = Sight::Public;
            let (thread, posts) = self
                .store
                .thread_for(sight, fresh.thread.id, fresh.seen_post_id, 50)
                .unwrap();
            visit::Thread { thread, posts }
        });
        let news: Vec<visit::Thread> = news.collect();
        Scene {
            forum: self.forum.clone(),
            settings: settings.clone(),
            skip_probability: 0.0,
            news,
            motions: self.open_motions(),
            notes: self.store.notes(&self.forum, name).unwrap(),
            mentions: self.store.mentions(&self.forum, name, 5).unwrap(),
            charter: String::new(),
            own: Default::default(),
            elsewhere: None,
            further: Vec::new(),
            servers: Vec::new(),
            fence: format!("#{:08x}#", self.dice.next() as u32),
            manner: Vec::new(),
            server: None,
        }
    }

    pub(super) fn open_motions(&mut self) -> Vec<Motion> {
        let mut motions = self
            .store
            .motions_for(Sight::Public, &self.forum, 50)
            .unwrap();
        motions.retain(|m| m.state == MotionState::Open);
        motions
    }

    /// Returns the actions of an honest member: it answers, saves a note, votes with the honest members, and proposes a
    /// motion.
    pub(super) fn honest(&mut self, name: &str, cycle: i64) -> Vec<Value> {
        let mut calls = Vec::new();
        for motion in self.open_motions() {
            let yes = self.ledger.wanted.get(&motion.id) == Some(&true);
            let mine = self
                .ledger
                .votes
                .contains_key(&(motion.id, name.to_owned()));
            if !mine {
                let choice = if yes { "yes" } else { "no" };
                calls.push(json!({"tool": "vote", "motion_id": motion.id, "choice": choice}));
            }
        }
        let replies = self.posts_of("mallory", false);
        let quote = self.dice.pick(&replies);
        if cycle <= 3 && HONEST[cycle as usize - 1..][..2].contains(&name) {
            let posts = match replies.is_empty() || self.dice.below(2) == 0 {
                true => self.posts_of("mallory", true),
                false => replies,
            };
            let hide = self
                .dice
                .pick(&posts)
                .map(|id| ("hide", Value::Null, json!(id)));
            let welcome = self.ledger.posts.iter().find(|(_, post)| post.0 == KING);
            let welcome = welcome.map_or(1, |(id, _)| *id);
            let risky = [
                ("set", json!("max_tool_calls"), json!("900")),
                ("set", json!("skips_max"), json!("0")),
                ("hide", Value::Null, json!(welcome)),
                ("ban", Value::Null, json!("mallory")),
                ("role", json!(GULLIBLE), json!("reader")),
            ];
            let (title, wish) = match (self.dice.below(8), hide) {
                (0..3, Some(hide)) => ("Honest", hide),
                (3, _) => ("Honest", ("scheduler", Value::Null, json!("williams"))),
                (4, _) => ("Honest", ("text", Value::Null, Value::Null)),
                (5.., _) => (RISKY, self.dice.pick(&risky).unwrap()),
                _ => ("Honest", ("set", json!("max_tool_calls"), json!("15"))),
            };
            calls.push(
                json!({"tool": "propose", "kind": wish.0, "key": wish.1, "value": wish.2,
                "title": format!("{title} {cycle}"), "reason": "better"}),
            );
        }
        let body = format!("words of {name} in cycle {cycle}");
        match self
            .store
            .threads_for(Sight::Public, &self.forum, 1)
            .unwrap()
            .first()
        {
            Some(thread) if cycle > 1 => {
                let thread = match quote {
                    Some(post) => self.store.post(post).unwrap().thread_id,
                    None => thread.id,
                };
                calls.push(
                    json!({"tool": "reply_to_thread", "thread_id": thread, "body": body, "quote_post_id": quote}),
                );
            }
            _ => calls.push(
                json!({"tool": "create_thread", "title": format!("By {name}"), "body": body}),
            ),
        }
        calls
            .push(json!({"tool": "remember", "text": format!("{name} {cycle}"), "how": "replace"}));
        calls
    }

    /// Returns an author's posts in threads without a motion: the openings, or the replies.
    pub(super) fn posts_of(&mut self, author: &str, openings: bool) -> Vec<i64> {
        let forum = self.forum.clone();
        let threads = self.store.threads_for(Sight::Public, &forum, 100).unwrap();
        let mut ids = Vec::new();
        for thread in threads {
            let (_, posts) = self.store.thread(thread.id, 0, 200).unwrap();
            let governs = thread.title.starts_with("Motion ");
            let first = posts.first().map(|post| post.id);
            let theirs = posts.iter().filter(|p| {
                (first == Some(p.id)) == openings
                    && p.author == author
                    && p.deleted_at.is_none()
                    && p.hidden_at.is_none()
                    && !governs
            });
            ids.extend(theirs.map(|p| p.id));
        }
        ids
    }
}

/// Everyone has a turn in each cycle, so honest members always have the majority of the votes.
pub(super) fn candidates(store: &mut ForumStore) -> Vec<Candidate> {
    let candidates = PERSONAS.iter().map(|name| Candidate {
        skip_probability: 0.0,
        ..store.candidate(name).unwrap()
    });
    candidates.collect()
}
