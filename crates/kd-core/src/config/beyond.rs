//! The parts of a configuration that are offered to other machines. Agent programs are not: they use the user's own
//! logins, which their vendors sell for one person.

use super::{Config, KNOWN_AGENTS, is_program};

impl Config {
    /// Leaves agent programs out: members that are named and defaults that would choose one. Returns their names. A request
    /// or a model that names one is refused ([`Config::serves_others`]).
    pub fn without_programs(&mut self) -> Vec<String> {
        self.serves_others = true;
        self.programs_for_models.clear();
        let mut out: Vec<String> = Vec::new();
        self.agents.retain(|name, agent| {
            let stays = !is_program(&agent.backend);
            if !stays {
                out.push(name.clone());
            }
            stays
        });
        let agents = &self.agents;
        let is_out = |name: &str| {
            let known = KNOWN_AGENTS.iter().any(|(known, _)| *known == name);
            !agents.contains_key(name) && (known || out.iter().any(|out| out == name))
        };
        let mut left_out: Vec<String> = Vec::new();
        for list in [&mut self.council.members, &mut self.council.review_members] {
            left_out.extend(list.iter().filter(|name| is_out(name)).cloned());
            list.retain(|name| !is_out(name));
        }
        // A model of the settings is what it says: it is refused, not asked without a member.
        for model in self.serve.models.values() {
            left_out.extend(model.members.iter().filter(|name| is_out(name)).cloned());
        }
        for one in [
            &mut self.council.chair,
            &mut self.think.fast,
            &mut self.think.rigorous,
            &mut self.think.arbiter,
            &mut self.serve.acting,
            &mut self.deliberation.meta.planner,
        ] {
            *one = one.take().filter(|name| !is_out(name));
        }
        if let Some(members) = &mut self.deliberation.council.members {
            left_out.extend(
                members
                    .iter()
                    .filter(|m| is_out(&m.model))
                    .map(|m| m.model.clone()),
            );
            members.retain(|member| !is_out(&member.model));
        }
        out.extend(left_out);
        out.sort();
        out.dedup();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AgentConfig;

    #[test]
    fn no_setting_names_a_program_any_more_and_the_others_stay() {
        let agent = |backend: &str| AgentConfig {
            backend: backend.into(),
            ..AgentConfig::default()
        };
        for backend in crate::config::BACKENDS {
            let mut config = Config::default();
            config.agents.insert("own".into(), agent(backend));
            config.agents.insert("svc".into(), agent("openai"));
            let names = || vec!["own".to_owned(), "svc".into(), "claude".into()];
            config.council.members = names();
            config.council.review_members = names();
            config.council.chair = Some("own".into());
            config.think.fast = Some("claude".into());
            config.serve.acting = Some("own".into());
            config.programs_for_models.insert("codex");
            let out = config.without_programs();
            assert!(config.serves_others && config.programs_for_models.is_empty());
            let program = is_program(backend);
            assert_eq!(config.agents.contains_key("own"), !program, "{backend}");
            assert_eq!(config.council.chair.is_some(), !program);
            assert_eq!(config.serve.acting.is_some(), !program);
            assert_eq!(config.think.fast, None);
            let stays: &[&str] = if program { &["svc"] } else { &["own", "svc"] };
            assert_eq!(config.council.members, stays, "{backend}");
            assert_eq!(config.council.review_members, stays, "{backend}");
            assert_eq!(out.contains(&"own".to_owned()), program, "{backend}");
            assert!(out.contains(&"claude".to_owned()));
        }
    }
}
