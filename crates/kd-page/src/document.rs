//! The surrounding document: inline styles and script, and a policy that allows only these, by hash.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");

/// A document.
#[derive(Debug)]
pub struct Page<'a> {
    /// The window title.
    pub title: &'a str,
    /// Its content before the script runs.
    pub main: Markup,
    /// Data for the script, such as the Markdown of messages.
    pub data: &'a Value,
    /// Where it is shown.
    pub place: Place,
}

/// Where a document is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a browser, from a file.
    File,
    /// In a browser, by the server that its script connects to.
    Served,
    /// In the sandbox of an MCP client, which sends it the result of a tool.
    App,
}

/// Returns the document and its policy, which is also in the document. A server sends it as `Content-Security-Policy`.
pub fn page(page: &Page<'_>) -> (String, String) {
    let connect = match page.place {
        Place::Served => "'self'",
        Place::File | Place::App => "'none'",
    };
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src {connect}; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (page.title) }
                style { (PreEscaped(STYLE)) }
            }
            body data-live[page.place == Place::Served] data-app[page.place == Place::App] {
                main id="main" { (page.main) }
                script type="application/json" id="data" { (PreEscaped(island(page.data))) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    (markup.into_string(), policy)
}

/// Returns a server's document, which shows nothing until its script has a token, and the policy for the header.
pub fn shell() -> (String, String) {
    let main = html! {
        div.app {
            nav #threads aria-label="Threads" {
                header { b { "kd" } span.row { button #forum type="button" { "Forum" } button #batches type="button" { "Batches" } button #new type="button" { "New" } } }
                input #search type="search" placeholder="Search all messages" aria-label="Search all messages" autocomplete="off";
                ol #list {}
            }
            div #open tabindex="-1" {
                div.welcome {
                    h1 { "Ask the council" }
                    p.faint { "Members answer side by side. What they say, and how it was decided, stays here." }
                    p.asks {}
                }
            }
            form #ask aria-label="Ask" {
                textarea #question rows="2" required placeholder="Ask the council (Ctrl+Enter sends)" aria-label="Question" {}
                div.row {
                    select #method aria-label="How" {
                        option value="ask" { "Ask: all answer, the chair concludes" }
                        option value="think" { "Think: a fast and a rigorous member debate" }
                        option value="deliberate" { "Deliberate: plan, answer, review, vote" }
                    }
                    details #whom hidden {
                        summary { "To: the usual members" }
                        div #members role="group" aria-label="Members to ask" {}
                    }
                    button #stop type="button" hidden { "Stop" }
                    button #send type="submit" { "Send" }
                }
            }
        }
        noscript { p { "This page needs its script. A thread as a page without one: " code { "kd export -o thread.html" } } }
    };
    page(&Page {
        title: "kd",
        main,
        data: &Value::Null,
        place: Place::Served,
    })
}

/// Returns the document of the MCP App, which shows nothing until the client has sent it the result of a tool.
pub fn app() -> String {
    let main = html! {
        div #open { p.faint role="status" { "Waiting for the council." } }
    };
    let (text, _) = page(&Page {
        title: "kd",
        main,
        data: &Value::Null,
        place: Place::App,
    });
    text
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// Serializes JSON so that it cannot end its enclosing element.
fn island(data: &Value) -> String {
    data.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_color_of_a_name_is_in_the_style_sheet() {
        let mut colors = std::collections::BTreeSet::new();
        for number in 0..kd_core::looks::COLORS {
            let class = format!(".c{number}{{--own:var(--c{number})}}");
            assert!(STYLE.contains(&class), "{class}");
            let (_, color) = STYLE.split_once(&format!("--c{number}:")).expect("a color");
            colors.insert(color.split(';').next());
        }
        assert_eq!(colors.len(), kd_core::looks::COLORS);
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let data = json!({"a": "</script><script>alert(1)</script><!--"});
        let (page, policy) = page(&Page {
            title: "</title><script>1</script>",
            main: html! { p { "x" } },
            data: &data,
            place: Place::File,
        });
        assert_eq!(page.matches("<script").count(), 2, "{page}");
        assert_eq!(page.matches("</script").count(), 2);
        let island = page.split("id=\"data\">").nth(1).unwrap();
        let island = island.split("</script>").next().unwrap();
        assert_eq!(serde_json::from_str::<Value>(island).unwrap(), data);
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
        assert!(policy.contains("connect-src 'none'"));
    }

    #[test]
    fn neither_styles_nor_script_can_end_their_element_or_fetch() {
        for (text, end) in [(STYLE, "</style"), (SCRIPT, "</script")] {
            assert!(!text.to_ascii_lowercase().contains(end));
            assert!(
                !text.contains("http:") && !text.contains("https:"),
                "an address"
            );
            assert!(
                !text.contains("url(") && !text.contains("@import"),
                "a fetch"
            );
        }
    }
}
