//! Calls of a visit to additional servers: counted like all calls, and logged. A server's answer is data and changes
//! nothing else.

use super::act::Caller;
use super::error::ForumError;
use super::{ForumStore, log};
use jiff::Timestamp;
use kd_core::config::forum::Settings;
use kd_core::request::ServerAnswer;
use kd_forum::logline::{LogEvent, LogLine};
use serde_json::Value;

impl ForumStore {
    /// Counts a call of a visit to a tool of an additional server, executes it by `send`, and logs it. A call over the
    /// limit is not sent.
    ///
    /// # Errors
    /// The database fails.
    pub fn call_server(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        name: &str,
        now: Timestamp,
        send: impl FnOnce() -> ServerAnswer,
    ) -> Result<Value, ForumError> {
        let settings = &self.narrow(&caller.forum, settings)?;
        if let Err(refused) = self.count(caller, settings, name, &Value::Null)? {
            return Ok(refused);
        }
        let ServerAnswer {
            server,
            tool,
            answer,
        } = send();
        let event = LogEvent::ServerCalled {
            agent: caller.name.clone(),
            server,
            tool,
            success: answer["success"] == true,
        };
        self.log_server(caller, event, now)?;
        Ok(answer)
    }

    /// Logs that an additional server cannot be called in a visit.
    ///
    /// # Errors
    /// The database fails.
    pub fn server_failed(
        &mut self,
        caller: &Caller,
        (server, why): (String, String),
        now: Timestamp,
    ) -> Result<(), ForumError> {
        let agent = caller.name.clone();
        let event = LogEvent::ServerFailed { agent, server, why };
        self.log_server(caller, event, now)
    }

    fn log_server(
        &mut self,
        caller: &Caller,
        event: LogEvent,
        at: Timestamp,
    ) -> Result<(), ForumError> {
        let forum = caller.forum.clone();
        log::add(&mut self.db, &LogLine { at, forum, event })
    }
}
