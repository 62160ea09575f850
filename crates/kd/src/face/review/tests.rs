//! Every format with hostile findings.

use super::*;
use crate::render::style::Styles;
use kd_core::review::{Cluster, Dropped, Finding, Lines, MemberSum, Raw, Report, Severity};
use kept::Place;

/// Texts that a hostile member or diff would like to have obeyed, shown or linked.
pub(crate) const HOSTILE: &[&str] = &[
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "![x](https://evil.example/x.png) [click](https://evil.example)",
    "@octocat @org/team fixes #1, see !2 ~label %\"v1\" $3 &4 GH-5",
    "https://evil.example/a http://evil.example www.evil.example mailto:a@evil.example",
    "/close\n/merge\n/label ~done",
    "```suggestion\nrm -rf /\n```\n# Heading\n- [ ] task\n> quote\n| a | b |",
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}gnp.exe\u{200f}",
    "[link](1) {0} {{1}} %SRCROOT% \\[x\\]",
    "&lt;b&gt; &#64;octocat <https://evil.example> <a@evil.example> [r]: https://evil.example",
    "***\n___\n~~x~~ ``` `` ` $`a`$ $$x$$ :boom: ::set-output name=x::y",
];

fn finding(text: &str, file: &str, first: u32) -> Finding {
    Finding {
        file: file.into(),
        lines: Lines {
            first,
            last: first + 1,
        },
        quote: format!("let x = 1;\n{text}"),
        claim: text.into(),
        severity: Severity::Major,
        evidence: text.into(),
        change: Some(text.into()),
    }
}

fn reported(id: &str, members: &[&str], finding: &Finding) -> Reported {
    let raw = |member: &&str| Raw {
        member: (*member).into(),
        finding: finding.clone(),
    };
    Reported {
        id: id.into(),
        cluster: Cluster {
            findings: members.iter().map(raw).collect(),
            how: Vec::new(),
        },
        votes: [("cyd".to_owned(), Vote::CannotTell)].into(),
        chance: Chance {
            share: 0.54,
            low: 0.4,
            high: 0.67,
            source: Source::Published { agreeing: 2, of: 3 },
        },
    }
}

fn kept(texts: &[&str]) -> Kept {
    let mut findings: Vec<Reported> = (1..)
        .zip(texts)
        .map(|(n, text)| reported(&format!("f{n}"), &["ann", "bob"], &finding(text, text, n)))
        .collect();
    let sound = finding("the lock is released before the write", "src/lock.rs", 41);
    findings.push(reported("a0", &["ann", "bob"], &sound));
    findings.push(reported(
        "a1",
        &["bob"],
        &finding("a name is short", "src/lock.rs", 90),
    ));
    let member = |name: &str, failed: Option<&str>| MemberSum {
        name: name.into(),
        findings: 1,
        dropped: 1,
        failed: failed.map(Into::into),
    };
    Kept {
        version: kept::VERSION,
        thread: "council-1".into(),
        base_commit: Some("1".repeat(40)),
        head_commit: Some("2".repeat(40)),
        size: (2, 42, 7),
        places: vec![Place {
            file: "src/lock.rs".into(),
            old: "src/old.rs".into(),
            rows: vec![(40, 41, Some(30)), (42, 50, None)],
        }],
        report: Report {
            version: 1,
            base: "main".into(),
            head: "HEAD".into(),
            findings,
            dropped: vec![Dropped {
                member: "ann".into(),
                finding: finding("x", "y", 1),
                why: "no such line".into(),
            }],
            members: vec![
                member("ann", None),
                member("bob", None),
                member("cyd", texts.first().copied()),
            ],
            notices: texts.iter().map(|text| (*text).to_owned()).collect(),
        },
    }
}

#[test]
fn what_a_single_reviewer_found_is_shown_and_the_heading_counts_reviewers() {
    let mut alone = kept(&[]);
    alone
        .report
        .findings
        .retain(|finding| finding.makers() == ["bob"]);
    assert_eq!(
        alone.folded().0.len(),
        0,
        "two others reviewed and did not find it"
    );
    for member in &mut alone.report.members {
        member.failed = (member.name != "bob").then(|| "no call left".to_owned());
    }
    assert_eq!(alone.folded().0.len(), 1);
    for format in [Format::Terminal, Format::Markdown, Format::Github] {
        let text = document(&alone, format, false).expect("text");
        assert!(text.contains("1 of 3 members reviewed"), "{text}");
    }
}

/// Returns every Markdown body that a code host or a reader renders.
fn rendered(kept: &Kept) -> Vec<String> {
    let mut bodies = vec![document(kept, Format::Markdown, true).expect("text")];
    let value = |format| -> serde_json::Value {
        serde_json::from_str(&document(kept, format, true).expect("text")).expect("JSON")
    };
    let github = value(Format::Github);
    let gitlab = value(Format::Gitlab);
    let all = std::iter::once(&github)
        .chain(github["comments"].as_array().expect("comments"))
        .chain(gitlab.as_array().expect("discussions"));
    bodies.extend(all.map(|item| item["body"].as_str().expect("a body").to_owned()));
    bodies
}

#[test]
fn nothing_that_members_write_is_markup_link_mention_or_command() {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    for hostile in HOSTILE {
        for body in rendered(&kept(&[hostile])) {
            let mut in_code = false;
            for event in Parser::new_ext(&body, Options::all()) {
                match event {
                    Event::Html(html) | Event::InlineHtml(html) => panic!("{html} in {body}"),
                    Event::Start(
                        Tag::Link { .. } | Tag::Image { .. } | Tag::Table(_) | Tag::BlockQuote(_),
                    ) => {
                        panic!("{event:?} in {body}")
                    }
                    Event::TaskListMarker(_)
                    | Event::Rule
                    | Event::DisplayMath(_)
                    | Event::InlineMath(_) => {
                        panic!("{event:?} in {body}")
                    }
                    Event::Start(Tag::CodeBlock(kind)) => {
                        in_code = true;
                        assert!(!format!("{kind:?}").contains("suggestion"), "{body}");
                    }
                    Event::End(pulldown_cmark::TagEnd::CodeBlock) => in_code = false,
                    Event::Text(text) if !in_code => {
                        // Code hosts recognize these in text without any syntax.
                        for sign in ["@o", "@e", "#1", "!2", "~l", "://", "www.", "&4"] {
                            assert!(!text.contains(sign), "{sign} in {text:?} of {body}");
                        }
                    }
                    _ => {}
                }
            }
            for line in body.lines() {
                assert!(!line.starts_with('/') || body.contains("```"), "{line}");
            }
            assert!(
                !body.contains(['\u{1b}', '\u{202e}', '\u{200f}']),
                "{body:?}"
            );
        }
    }
}

#[test]
fn the_terminal_obeys_nothing() {
    let lines = terminal(&kept(HOSTILE), true, Styles::NONE, 80);
    for line in &lines {
        let odd = |c: char| c.is_control() || crate::render::clean::is_unsafe(c);
        assert!(!line.contains(odd), "{line:?}");
    }
}

#[test]
fn sarif_is_valid_and_its_paths_stay_in_the_tree() {
    let schema = include_str!("../../../tests/data/sarif-2.1.0.schema.json");
    // The official file has a pattern with a bare `]`, which strict regex parsers reject.
    let schema = schema.replace("{2}]?$", r"{2}\\]?$");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for kept in [
        kept(&[]),
        kept(HOSTILE),
        kept(&["../../etc/passwd", "file:///etc/passwd"]),
    ] {
        for all in [false, true] {
            let text = document(&kept, Format::Sarif, all).expect("text");
            let log: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let errors: Vec<String> = validator.iter_errors(&log).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}");
            let results = log["runs"][0]["results"].as_array().expect("results");
            assert_eq!(
                results.len(),
                kept.report.findings.len() - usize::from(!all)
            );
            for result in results {
                let place = &result["locations"][0]["physicalLocation"];
                let uri = place["artifactLocation"]["uri"].as_str().expect("a uri");
                assert!(
                    !uri.contains("..") && !uri.contains([':', '\\', '<']),
                    "{uri}"
                );
                assert_eq!(result["rank"], 54.0);
                assert!(result["partialFingerprints"]["kdFinding/v1"].is_string());
                assert!(result.get("suppressions").is_none());
            }
            assert!(!text.contains(['\u{1b}', '\u{202e}']));
        }
    }
    // A schema that accepts everything would prove nothing.
    assert!(
        !validator.is_valid(&serde_json::json!({"version": "2.1.0", "runs": [{"results": [{}]}]}))
    );
}

#[test]
fn comments_stand_at_lines_that_the_diff_shows() {
    let kept = kept(&[]);
    let value = |format, all| -> serde_json::Value {
        serde_json::from_str(&document(&kept, format, all).expect("text")).expect("JSON")
    };
    let github = value(Format::Github, true);
    assert_eq!(github["event"], "COMMENT");
    let comments = github["comments"].as_array().expect("comments");
    assert_eq!(comments.len(), 1, "line 90 is not in the diff");
    assert_eq!(
        (&comments[0]["start_line"], &comments[0]["line"]),
        (&41.into(), &42.into())
    );
    assert!(
        github["body"]
            .as_str()
            .expect("a body")
            .contains("`src/lock.rs:90-91`")
    );
    let gitlab = value(Format::Gitlab, true);
    assert_eq!(gitlab.as_array().expect("discussions").len(), 2);
    let position = &gitlab[1]["position"];
    assert_eq!(
        (&position["new_line"], &position["old_path"]),
        (&42.into(), &"src/old.rs".into())
    );
    assert!(position.get("old_line").is_none(), "the line is new");
    let hidden = value(Format::Github, false).to_string();
    assert!(
        hidden.contains("Only one member saw 1 finding more")
            && !hidden.contains("a name is short")
    );
}

#[test]
fn screens() {
    let kept = kept(&[]);
    let plain = Styles::NONE;
    insta::assert_snapshot!("screen-80", terminal(&kept, false, plain, 80).join("\n"));
    insta::assert_snapshot!(
        "screen-200-all",
        terminal(&kept, true, plain, 200).join("\n")
    );
    insta::assert_snapshot!(
        "markdown",
        document(&kept, Format::Markdown, true).expect("text")
    );
}
