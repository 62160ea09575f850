//! The local record of a visit to a forum elsewhere: calls are counted and limited, actions recorded, notes kept here.
//! The other forum's answer is data and changes nothing else.

use super::act::{Caller, refused, told, with_masked};
use super::error::ForumError;
use super::{ForumStore, runs};
use jiff::Timestamp;
use kd_core::Failure;
use kd_core::config::forum::Settings;
use kd_forum::tools::Call;
use kd_forum::words::Deed;
use serde_json::Value;

impl ForumStore {
    /// Parses a call of a visit and executes it: leaving and notes here, everything else by `send`, which gets the tool
    /// and its checked arguments. The agent gets an error of `send` as a refusal.
    ///
    /// # Errors
    /// The database fails.
    pub fn relay(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        name: &str,
        arguments: &Value,
        now: Timestamp,
        send: impl FnOnce(&str, &Value) -> Result<Value, Failure>,
    ) -> Result<Value, ForumError> {
        let (arguments, masked) = self.masked(arguments);
        let call = match self.read(caller, settings, name, &arguments)? {
            Ok((_, call)) => call,
            Err(answer) => return Ok(answer),
        };
        if matches!(
            call,
            Call::Skip { .. } | Call::Finish { .. } | Call::Remember { .. } | Call::Recall
        ) {
            let answer = told(self.act(caller, settings.into(), &call, 0, now))?;
            return Ok(with_masked(answer, &masked));
        }
        let answer = match send(call.tool(), &sent(&call)) {
            Ok(answer) => with_masked(answer, &masked),
            Err(why) => return Ok(refused(&why.with_advice())),
        };
        if let (Some(run), true) = (caller.run, call.acts() && answer["success"] == true) {
            let number = |key: &str| answer[key].as_i64();
            let deed = Deed {
                tool: call.tool().to_owned(),
                thread_id: number("thread_id"),
                post_id: number("post_id"),
                motion_id: number("motion_id"),
            };
            let entered = self.db.whole(|db| runs::did(db, run, deed));
            return told(entered.map(|()| answer));
        }
        Ok(answer)
    }
}

/// Returns the arguments to send: only arguments that the tool has, in parsed form.
fn sent(call: &Call) -> Value {
    let mut value = serde_json::to_value(call).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.remove("tool");
        // `0` is the beginning.
        fields.retain(|name, value| !(value.is_null() || name == "after_post_id" && *value == 0));
    }
    value
}
