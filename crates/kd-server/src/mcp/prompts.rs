//! Prompts: what a person picks in a client's menu to consult the council. Each is a text that asks the client's model
//! to call one tool.

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage, Role,
};
use serde_json::Value;

/// Maximum bytes of an argument: a question, as accepted by a council.
const ARGUMENT_BYTES_MAX: usize = 4 << 20;

/// A prompt.
struct Row {
    name: &'static str,
    title: &'static str,
    doc: &'static str,
    /// The tool that it calls.
    tool: &'static str,
    /// Its arguments: name, description, whether it is required. The first is the subject.
    arguments: &'static [(&'static str, &'static str, bool)],
    /// The first words of the question.
    lead: &'static str,
}

const MEMBERS: (&str, &str, bool) = (
    "members",
    "The members to ask, separated by commas; default: as configured.",
    false,
);

const ROWS: &[Row] = &[
    Row {
        name: "ask",
        title: "Ask the council",
        doc: "All members answer independently, and the chair concludes.",
        tool: "ask_council",
        arguments: &[("question", "The question.", true), MEMBERS],
        lead: "",
    },
    Row {
        name: "think",
        title: "Have two members think",
        doc: "A fast and a rigorous member check each other and return one answer.",
        tool: "think",
        arguments: &[("question", "The question.", true), MEMBERS],
        lead: "",
    },
    Row {
        name: "deliberate",
        title: "Have the council deliberate",
        doc: "The council plans, answers, reviews and votes, and returns a verdict with support and dissent.",
        tool: "deliberate",
        arguments: &[
            (
                "question",
                "The question; name the options, if there are any.",
                true,
            ),
            MEMBERS,
            (
                "preset",
                "small, standard, reasoning or diverse; default: by the question.",
                false,
            ),
        ],
        lead: "",
    },
    Row {
        name: "review",
        title: "Have the council review a change",
        doc: "All members look for faults in a change, and the chair keeps those that hold.",
        tool: "ask_council",
        arguments: &[
            ("change", "The change: a diff, or what to review.", true),
            MEMBERS,
        ],
        lead: "Review this change. For each fault: the file and the line, what goes wrong, and for which input. Say so if there is none.\n\n",
    },
];

/// Lists the prompts.
pub(super) fn list() -> ListPromptsResult {
    let prompt = |row: &Row| {
        let arguments = row.arguments.iter().map(|(name, doc, required)| {
            PromptArgument::new(*name)
                .with_description(*doc)
                .with_required(*required)
        });
        Prompt::new(row.name, Some(row.doc), Some(arguments.collect())).with_title(row.title)
    };
    ListPromptsResult::with_all_items(ROWS.iter().map(prompt).collect())
}

/// Returns a prompt with its arguments filled in.
///
/// # Errors
/// If there is no such prompt or argument, or a required one is missing.
pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let bad = |why: String| ErrorData::invalid_params(why, None);
    let Some(row) = ROWS.iter().find(|row| row.name == request.name) else {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        let why = format!(
            "there is no prompt of this name; prompts: {}",
            names.join(", ")
        );
        return Err(bad(why));
    };
    let given = request.arguments.iter().flatten();
    let known = |name: &str| row.arguments.iter().any(|argument| argument.0 == name);
    if given.clone().any(|(name, _)| !known(name)) {
        let names: Vec<&str> = row.arguments.iter().map(|argument| argument.0).collect();
        return Err(bad(format!("`{}` takes {}", row.name, names.join(", "))));
    }
    let text = |name: &str| -> Result<Option<&str>, ErrorData> {
        let value = request.arguments.as_ref().and_then(|given| given.get(name));
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() <= ARGUMENT_BYTES_MAX => {
                Ok(Some(text.trim()).filter(|text| !text.is_empty()))
            }
            Some(_) => Err(bad(format!("`{name}` must be a text of at most 4 MiB"))),
        }
    };
    let (subject, rest) = row.arguments.split_first().unwrap_or((&MEMBERS, &[]));
    let Some(question) = text(subject.0)? else {
        return Err(bad(format!("`{}` is missing: {}", subject.0, subject.1)));
    };
    let mut call = format!("Call the tool `{}`", row.tool);
    for (name, ..) in rest {
        if let Some(value) = text(name)? {
            call += &format!(", with `{name}`: {value}");
        }
    }
    let lead = row.lead;
    let text = format!(
        "{call}. Pass everything below the line as `question`, word for word, and then tell me the answer, who disagreed, and the thread.\n\n---\n\n{lead}{question}"
    );
    let message = PromptMessage::new_text(Role::User, text);
    let mut result = GetPromptResult::new(vec![message]);
    result.description = Some(row.doc.to_owned());
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(name: &str, arguments: Value) -> Result<String, ErrorData> {
        let mut request = GetPromptRequestParams::new(name);
        request.arguments = arguments.as_object().cloned();
        let result = get(&request)?;
        Ok(serde_json::to_string(&result.messages).expect("JSON"))
    }

    #[test]
    fn every_prompt_calls_its_tool_with_the_words_of_the_user_and_refuses_the_rest() {
        for row in ROWS {
            let subject = row.arguments[0].0;
            let told =
                ask(row.name, json!({subject: "Tabs?", "members": "a,b"})).expect("a prompt");
            for part in [row.tool, "Tabs?", "`members`: a,b"] {
                assert!(told.contains(part), "{part}: {told}");
            }
            for bad in [
                json!({}),
                json!({subject: ""}),
                json!({subject: 7}),
                json!({subject: "x", "other": "y"}),
                json!({subject: "x".repeat(ARGUMENT_BYTES_MAX + 1)}),
            ] {
                assert!(ask(row.name, bad).is_err(), "{}", row.name);
            }
        }
        assert!(ask("nope", json!({"question": "x"})).is_err());
    }
}
