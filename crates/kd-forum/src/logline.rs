//! The log of a forum: its lines in the format of the original forum, as text and as JSON.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kd_core::clean::is_invisible;
use serde::{Deserialize, Serialize};

/// A log event. The text of each begins as in the original forum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LogEvent {
    /// A cycle begins.
    CycleStarted {
        /// Its number.
        cycle: i64,
        /// The seed, if the user chose it: anyone who knows it can predict the cycles.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
        /// The commitment that the draw fulfils.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commitment: Option<String>,
        /// The commitment to the next cycle's secret.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    },
    /// A cycle is void; the next one is a new draw.
    CycleVoided {
        /// Its number.
        cycle: i64,
        /// The reason.
        why: String,
    },
    /// An interrupted cycle continues.
    CycleResumed {
        /// Its number.
        cycle: i64,
        /// Candidates without a turn so far, by name.
        left: Vec<String>,
    },
    /// The drawn order, logged at the end of the cycle; a cycle with `--seed` logs it at its start.
    OrderDrawn {
        /// The scheduler.
        scheduler: String,
        /// All candidates, including those who sit out.
        order: Vec<String>,
    },
    /// An agent sits out.
    SittingOut {
        /// The agent.
        agent: String,
    },
    /// An agent's run starts.
    RunStarted {
        /// The agent.
        agent: String,
    },
    /// An agent's run has ended.
    RunCompleted {
        /// The agent.
        agent: String,
        /// Its last action, or `skip`.
        action: String,
        /// Whether it ended normally.
        success: bool,
        /// The resulting post.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        post_id: Option<i64>,
        /// The reason why it skipped or failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An agent's claim differs from what it did.
    ClaimDiffers {
        /// The agent.
        agent: String,
        /// The action that the agent claimed.
        claim: String,
        /// The actions that the agent took.
        did: String,
    },
    /// A run interrupted by a crash is closed; its agent does not run again in this cycle.
    RunClosed {
        /// The agent.
        agent: String,
    },
    /// An agent called a tool of one of its additional servers.
    ServerCalled {
        /// The agent.
        agent: String,
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// Whether the call succeeded.
        success: bool,
    },
    /// An additional server of an agent, or one of its tools, is unavailable in a visit.
    ServerFailed {
        /// The agent.
        agent: String,
        /// The server.
        server: String,
        /// The reason.
        why: String,
    },
    /// A wait before the next agent.
    WaitingForAgent {
        /// The duration in seconds.
        secs: f64,
    },
    /// Every agent had its turn.
    CycleComplete {
        /// Its number.
        cycle: i64,
    },
    /// A person stopped the cycle; it can be continued.
    CycleStopped {
        /// Its number.
        cycle: i64,
        /// Candidates without a turn so far, by name.
        left: Vec<String>,
    },
    /// A wait before the next cycle.
    WaitingForCycle {
        /// The duration in seconds.
        secs: f64,
    },
    /// Settings that the project folder requests and the user has not allowed.
    HeldBack {
        /// Settings, by key; personas, by file.
        settings: Vec<String>,
        /// Personas that do not take part.
        agents: Vec<String>,
    },
    /// A moderation action: a post hidden, a thread closed, an account banned, a role given.
    Order {
        /// The number of the entry.
        entry: i64,
        /// The action, its author and its reason.
        what: String,
    },
    /// The owner erased texts.
    Erased {
        /// The owner.
        by: String,
        /// The posts.
        posts: Vec<i64>,
        /// Number of other texts that repeated them.
        texts: usize,
    },
    /// The rules were changed, or a change was proposed.
    Motion {
        /// Its number.
        motion: i64,
        /// The event.
        what: String,
    },
}

/// One log line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// The time.
    pub at: Timestamp,
    /// The forum.
    pub forum: String,
    /// The event.
    #[serde(flatten)]
    pub event: LogEvent,
}

impl LogLine {
    /// Formats the line like the original forum, in the given time zone: `2025-01-15 10:00:00 - Starting new cycle`.
    /// Always one line, whatever the names and reasons contain.
    pub fn text(&self, zone: &TimeZone) -> String {
        let at = self.at.to_zoned(zone.clone());
        let words = escaped(&self.event.text());
        format!("{} - {words}", at.strftime("%Y-%m-%d %H:%M:%S"))
    }
}

impl LogEvent {
    /// Returns the text after the time.
    pub fn text(&self) -> String {
        match self {
            Self::CycleStarted {
                seed: Some(seed), ..
            } => format!("Starting new cycle (foreseeable: seed {seed})"),
            Self::CycleStarted { .. } => "Starting new cycle".into(),
            Self::CycleVoided { cycle, why } => format!("Cycle {cycle} is void: {why}"),
            Self::CycleResumed { cycle, left } => {
                format!("Resuming cycle {cycle}: no turn yet: {}", list(left))
            }
            Self::OrderDrawn { scheduler, order } if scheduler == "shuffle" => {
                format!("Shuffled agent order: {}", list(order))
            }
            Self::OrderDrawn { scheduler, order } => {
                format!("Agent order by {scheduler}: {}", list(order))
            }
            Self::HeldBack { settings, agents } if agents.is_empty() => {
                format!("Held back: {}", list(settings))
            }
            Self::HeldBack { agents, .. } => format!("Held back: {}", list(agents)),
            Self::SittingOut { agent } => format!("{agent} sitting out this cycle (random skip)"),
            Self::RunStarted { agent } => format!("Starting run for agent: {agent}"),
            Self::RunCompleted {
                agent,
                action,
                success,
                reason,
                ..
            } => {
                let success = if *success { "True" } else { "False" };
                let reason = reason
                    .as_ref()
                    .map(|r| format!(" ({r})"))
                    .unwrap_or_default();
                format!("Completed run for {agent}: {action} - Success: {success}{reason}")
            }
            Self::ServerCalled {
                agent,
                server,
                tool,
                success,
            } => {
                let success = if *success { "True" } else { "False" };
                format!("{agent} called {tool} of server {server} - Success: {success}")
            }
            Self::ServerFailed { agent, server, why } => {
                format!("Server {server} of {agent}: {why}")
            }
            Self::ClaimDiffers { agent, claim, did } => {
                format!("{agent} says {claim}, and did {did}")
            }
            Self::RunClosed { agent } => {
                format!("Run for {agent} was cut off; it is not run again in this cycle")
            }
            Self::WaitingForAgent { secs } => format!("Waiting {secs:.1}s before next agent"),
            Self::CycleComplete { .. } => "Cycle complete".into(),
            Self::CycleStopped { cycle, left } => {
                format!("Cycle {cycle} stopped: no turn yet: {}", list(left))
            }
            Self::WaitingForCycle { secs } => format!("Waiting {secs:.0}s for next cycle"),
            Self::Order { what, .. } => format!("Order: {what}"),
            Self::Erased { by, posts, texts } => erased(by, posts, *texts),
            Self::Motion { motion, what } => format!("Motion {motion}: {what}"),
        }
    }
}

fn erased(by: &str, posts: &[i64], texts: usize) -> String {
    let numbers: Vec<String> = posts.iter().map(i64::to_string).collect();
    let mut parts = Vec::new();
    match numbers.as_slice() {
        [] => {}
        [one] => parts.push(format!("post {one}")),
        many => parts.push(format!("posts {}", many.join(", "))),
    }
    match texts {
        0 => {}
        1 => parts.push("1 other text".to_owned()),
        texts => parts.push(format!("{texts} other texts")),
    }
    format!("{by} erased {}", parts.join(" and "))
}

/// Escapes backslashes and non-printing characters, so that the text stays on one line.
fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '\\' => line.push_str("\\\\"),
            '\u{2028}' | '\u{2029}' => line.extend(c.escape_unicode()),
            c if c.is_control() || is_invisible(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

/// Formats a list as `['opus', 'sonnet']`; names cannot contain quotes.
fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_as_in_the_seed_and_come_back_from_json() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let done = |agent: &str, action: &str| LogEvent::RunCompleted {
            agent: agent.into(),
            action: action.into(),
            success: true,
            post_id: None,
            reason: None,
        };
        let lines = [
            (
                0,
                LogEvent::CycleStarted {
                    cycle: 1,
                    seed: None,
                    commitment: Some("ab".into()),
                    next: None,
                },
                "2025-01-15 10:00:00 - Starting new cycle",
            ),
            (
                0,
                LogEvent::OrderDrawn {
                    scheduler: "shuffle".into(),
                    order: names(&["opus", "sonnet", "haiku"]),
                },
                "2025-01-15 10:00:00 - Shuffled agent order: ['opus', 'sonnet', 'haiku']",
            ),
            (
                0,
                LogEvent::SittingOut {
                    agent: "sonnet".into(),
                },
                "2025-01-15 10:00:00 - sonnet sitting out this cycle (random skip)",
            ),
            (
                1,
                LogEvent::RunStarted {
                    agent: "opus".into(),
                },
                "2025-01-15 10:00:01 - Starting run for agent: opus",
            ),
            (
                15,
                done("opus", "reply_to_thread"),
                "2025-01-15 10:00:15 - Completed run for opus: reply_to_thread - Success: True",
            ),
            (
                15,
                LogEvent::WaitingForAgent { secs: 47.3 },
                "2025-01-15 10:00:15 - Waiting 47.3s before next agent",
            ),
            (
                78,
                LogEvent::CycleComplete { cycle: 1 },
                "2025-01-15 10:01:18 - Cycle complete",
            ),
            (
                78,
                LogEvent::WaitingForCycle { secs: 300.0 },
                "2025-01-15 10:01:18 - Waiting 300s for next cycle",
            ),
        ];
        let start: Timestamp = "2025-01-15T10:00:00Z".parse().unwrap();
        for (second, event, text) in lines {
            let at = start + jiff::SignedDuration::from_secs(second);
            let line = LogLine {
                at,
                forum: "main".into(),
                event,
            };
            assert_eq!(line.text(&TimeZone::UTC), text);
            assert_eq!(
                serde_json::from_str::<LogLine>(&serde_json::to_string(&line).unwrap()).unwrap(),
                line
            );
        }
    }

    #[test]
    fn a_line_is_one_line_in_the_time_of_its_zone() {
        let line = LogLine {
            at: "2025-01-15T10:00:00Z".parse().unwrap(),
            forum: "main".into(),
            event: LogEvent::RunCompleted {
                agent: "ada".into(),
                action: "skip".into(),
                success: true,
                post_id: None,
                reason: Some(
                    "tired\n2025-01-15 10:00:01 - ada \\ \u{1b}[2J\u{202e}\u{2028}x".into(),
                ),
            },
        };
        let zone = TimeZone::fixed(jiff::tz::offset(-5));
        let text = line.text(&zone);
        assert_eq!(
            text,
            "2025-01-15 05:00:00 - Completed run for ada: skip - Success: True \
             (tired\\n2025-01-15 10:00:01 - ada \\\\ \\u{1b}[2J\\u{202e}\\u{2028}x)"
        );
    }
}
