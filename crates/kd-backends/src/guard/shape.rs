//! The form of an answer: where a schema was asked for, only an answer that satisfies it is whole.

use crate::Backend;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, FailureKind, Request};
use serde_json::Value;
use std::sync::Arc;

/// Checks answers against the request's schema. An answer that does not satisfy it is a `Decode` failure, so it is
/// asked for again; a code fence around a good one is taken off.
pub struct Shape {
    inner: Arc<dyn Backend>,
}

impl Shape {
    /// Guards this backend.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner }
    }
}

impl Backend for Shape {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let Some(schema) = request.schema.clone() else {
            return self.inner.ask(request);
        };
        let state = (Some(self.inner.ask(request)), String::new(), schema);
        stream::unfold(state, |(deltas, mut text, schema)| async move {
            let mut deltas = deltas?;
            let item = match deltas.next().await? {
                Ok(Delta::Finished {
                    finish,
                    text: stated,
                    usage,
                    choices,
                }) => {
                    let said = stated.as_deref().unwrap_or(&text);
                    match check(said, &schema) {
                        Ok(inner) => {
                            let text = if inner == text {
                                None
                            } else {
                                Some(inner.to_owned())
                            };
                            Ok(Delta::Finished {
                                finish,
                                text,
                                usage,
                                choices,
                            })
                        }
                        Err(failure) => Err(failure),
                    }
                }
                other => {
                    if let Ok(Delta::Text { text: piece }) = &other {
                        text.push_str(piece);
                    }
                    other
                }
            };
            let open = item.is_ok().then_some(deltas);
            Some((item, (open, text, schema)))
        })
        .boxed()
    }
}

/// The JSON of an answer, if it satisfies the schema.
fn check<'a>(text: &'a str, schema: &Value) -> Result<&'a str, Failure> {
    let decode = |what: String| Failure::new(FailureKind::Decode, what);
    let inner = unfenced(text);
    let value: Value =
        serde_json::from_str(inner).map_err(|e| decode(format!("the answer is not JSON: {e}")))?;
    // References to elsewhere are never followed: the crate is built without that.
    let validator = jsonschema::validator_for(schema).map_err(|e| {
        Failure::new(
            FailureKind::Invalid,
            format!("the schema cannot be used: {e}"),
        )
    })?;
    match validator.iter_errors(&value).next() {
        None => Ok(inner),
        Some(error) => Err(decode(format!(
            "the answer does not fit its schema at `{}`: {error}",
            error.instance_path()
        ))),
    }
}

/// The text inside a Markdown fence, else the text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```").and_then(|t| t.strip_suffix("```")) else {
        return text;
    };
    inside
        .split_once('\n')
        .map_or(text, |(_, body)| body.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::scripted::{Act, Script, Scripted};
    use crate::testing::{request, run};
    use serde_json::json;

    async fn asked(text: &str, schema: Option<Value>) -> Result<Delta, Failure> {
        let backend = Scripted::new(Script {
            runs: vec![vec![Act::text(text), Act::finish()]],
        });
        let (_, end) = run(
            &Shape::new(Arc::new(backend)),
            Request {
                schema,
                ..request("q")
            },
        )
        .await;
        end
    }

    #[tokio::test]
    async fn only_what_fits_is_whole() {
        let schema = Some(
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}),
        );
        asked("{\"n\": 3}", schema.clone()).await.unwrap();
        let Ok(Delta::Finished { text, .. }) =
            asked("```json\n{\"n\": 3}\n```\n", schema.clone()).await
        else {
            panic!()
        };
        assert_eq!(text.as_deref(), Some("{\"n\": 3}"));
        for bad in ["", "no", "{\"n\": \"three\"}", "{}", "{\"n\": 3"] {
            assert_eq!(
                asked(bad, schema.clone()).await.unwrap_err().kind,
                FailureKind::Decode,
                "{bad}"
            );
        }
        assert_eq!(
            asked("{}", Some(json!({"type": 3})))
                .await
                .unwrap_err()
                .kind,
            FailureKind::Invalid
        );
        asked("anything", None).await.unwrap();
    }
}
