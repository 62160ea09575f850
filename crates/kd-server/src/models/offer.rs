//! A client's conversation with tools, in any API's format, as the acting member gets it: messages, calls and
//! results, step by step, and the tools on offer.

use super::fault::Fault;
use kd_core::acting::Talk;
use kd_core::request::{Picture, Said, ToolCall, ToolChoice, ToolSpec};
use serde_json::{Value, json};

/// The separator between two texts of one step.
const GAP: &str = "\n\n";

/// Collects the steps of a conversation.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) talk: Talk,
    /// Whether a call or its result occurs: only an acting member understands them.
    pub(super) has_calls: bool,
    /// Whether an earlier conversation precedes it, which the server keeps.
    pub(super) continues: bool,
}

impl Offer {
    /// Adds instructions: to the others at the beginning, else as a step.
    pub(super) fn system(&mut self, text: &str) {
        if text.trim().is_empty() {
        } else if self.talk.said.is_empty() {
            join(&mut self.talk.system, text);
        } else {
            self.user(text);
        }
    }

    /// Adds words of the user.
    pub(super) fn user(&mut self, text: &str) {
        if !text.is_empty() {
            let text = text.to_owned();
            self.talk.said.push(Said::User { text });
        }
    }

    /// Adds an earlier answer. An answer that follows another one without a break is appended to it.
    pub(super) fn agent(&mut self, text: &str, calls: Vec<ToolCall>) {
        if text.is_empty() && calls.is_empty() {
            return;
        }
        self.has_calls |= !calls.is_empty();
        if let Some(Said::Agent {
            text: before,
            calls: made,
        }) = self.talk.said.last_mut()
        {
            join(before, text);
            made.extend(calls);
        } else {
            let text = text.to_owned();
            self.talk.said.push(Said::Agent { text, calls });
        }
    }

    /// Adds the result of a call.
    ///
    /// # Errors
    /// If there is no such call.
    pub(super) fn result(
        &mut self,
        id: &str,
        result: String,
        failed: bool,
        param: &'static str,
    ) -> Result<(), Fault> {
        self.has_calls = true;
        let name = match self.talk.name_of(id) {
            Some(name) => name.to_owned(),
            // The earlier conversation has it.
            None if self.continues => String::new(),
            None => return Err(Fault::orphan(id, param)),
        };
        let result = Said::Tool {
            id: id.to_owned(),
            name,
            result,
            failed,
        };
        // Services want the results of one answer next to each other, pictures of the earlier ones after them.
        let is_picture = |said: &&Said| matches!(said, Said::Picture { .. });
        let said = &mut self.talk.said;
        let at = said.len() - said.iter().rev().take_while(is_picture).count();
        match said[..at].last() {
            Some(Said::Tool { .. }) => said.insert(at, result),
            _ => said.push(result),
        }
        Ok(())
    }

    /// Adds pictures.
    pub(super) fn pictures(&mut self, pictures: Vec<Picture>) {
        let steps = pictures
            .into_iter()
            .map(|picture| Said::Picture { picture });
        self.talk.said.extend(steps);
    }

    /// Adds a tool.
    pub(super) fn tool(&mut self, name: &str, doc: &str, schema: &Value) {
        let schema = match schema {
            Value::Object(_) => schema.clone(),
            _ => json!({"type": "object", "properties": {}}),
        };
        self.talk.tools.push(ToolSpec {
            name: name.to_owned(),
            doc: doc.to_owned(),
            schema,
        });
    }

    /// Offers only these tools.
    pub(super) fn only(&mut self, names: &[&str]) {
        self.talk
            .tools
            .retain(|tool| names.contains(&tool.name.as_str()));
    }

    /// Returns the conversation, and whether one member is to act: tools are on offer and may be called, or were called
    /// before.
    ///
    /// # Errors
    /// If a tool must be called that is not on offer.
    pub(super) fn finish(self) -> Result<(Talk, bool), Fault> {
        let Self {
            talk, has_calls, ..
        } = self;
        let missing = match &talk.choice {
            ToolChoice::Named(name) => !talk.offers(name),
            ToolChoice::Required => talk.tools.is_empty(),
            ToolChoice::Auto | ToolChoice::None => false,
        };
        if missing {
            let why = "a tool must be called that `tools` does not contain; tools that the provider runs are not offered";
            return Err(Fault::invalid(Some("tool_choice"), why));
        }
        let may_call = !talk.tools.is_empty() && talk.choice != ToolChoice::None;
        Ok((talk, may_call || has_calls))
    }
}

/// Reads the arguments of a call. Text that is not JSON stays text.
pub(super) fn arguments(text: &str) -> Value {
    match text.trim() {
        "" => json!({}),
        text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str(GAP);
    }
    text.push_str(more);
}

/// Reads a `tool_choice` in OpenAI's forms; `name_of` finds the name in an object that demands one tool.
///
/// # Errors
/// If it has no known form.
pub(super) fn choose(
    offer: &mut Offer,
    choice: Option<&Value>,
    name_of: fn(&Value) -> Option<&str>,
) -> Result<(), Fault> {
    let Some(choice) = choice.filter(|choice| !choice.is_null()) else {
        return Ok(());
    };
    let bad = || {
        let why = "`tool_choice` must be none, auto, required, or name one tool";
        Fault::invalid(Some("tool_choice"), why)
    };
    let word = |word: &str| match word {
        "none" => Ok(ToolChoice::None),
        "auto" => Ok(ToolChoice::Auto),
        "required" | "any" => Ok(ToolChoice::Required),
        _ => Err(bad()),
    };
    if let Some(text) = choice.as_str() {
        offer.talk.choice = word(text)?;
        return Ok(());
    }
    if choice["type"] == "allowed_tools" {
        // Chat Completions nests the list, Responses does not.
        let list = choice.get("allowed_tools").unwrap_or(choice);
        let tools = list["tools"].as_array().ok_or_else(bad)?;
        let names: Vec<&str> = tools.iter().filter_map(name_of).collect();
        offer.only(&names);
        offer.talk.choice = word(list["mode"].as_str().unwrap_or("auto"))?;
        return Ok(());
    }
    let name = name_of(choice).ok_or_else(bad)?;
    offer.talk.choice = ToolChoice::Named(name.to_owned());
    Ok(())
}
