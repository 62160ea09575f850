//! Every format with hostile findings.

use super::*;
use crate::render::style::Styles;
use kd_app::review::report::{self as kept, Place};
use kd_core::review::{Cluster, Dropped, Finding, Lines, MemberSum, Raw, Report, Severity};

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
    "</details></summary></td></table><details open><summary>x</summary>",
    "::error file=src/lock.rs,line=1::owned\n::add-mask::a\n   ::stop-commands::t\n::set-output name=a::b",
    "##[error]owned ##vso[task.setvariable variable=a]b",
    "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nMAJOR  src/other.rs:1  0000000000\n    P(real) 99 %",
    "\"}], \"results\": [{\"ruleId\": \"x\"}] //",
    "\u{2028}::error::a\u{2029}::error::b\u{85}::error::c\r::error::d\u{b}::error::e\u{c}::error::f",
    "е\u{301}\u{301}\u{301}vil \u{430}dmin \u{2066}x\u{2069} \u{e0041}\u{feff}\u{ad}",
    "***\n___\n~~x~~ ``` `` ` $`a`$ $$x$$ :boom: ::set-output name=x::y",
];

/// File names of a hostile change.
pub(crate) const NAMES: &[&str] = &[
    "a\nb.rs",
    "a\r\n::error::b.rs",
    "-rf.rs",
    "--output=x.rs",
    "a\"b'c.rs",
    "a`b``c.rs",
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\x.rs",
    "C:/x.rs",
    "\\\\host\\share\\x.rs",
    "a b#c?d=e&f.rs",
    "%2e%2e/%2e%2e/x.rs",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "\u{202e}sr.exe",
    "::error file=x::y.rs",
    "##[error]x.rs",
    "<img src=x onerror=alert(1)>.rs",
    "[x](https://evil.example).rs",
    "@octocat.rs",
    "a|b\tc.rs",
    "",
    ".",
    "\u{1b}[2Ja.rs",
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
        severity: None,
        cluster: Cluster {
            findings: members.iter().map(raw).collect(),
            how: Vec::new(),
        },
        votes: [("cyd".to_owned(), Vote::CannotTell)].into(),
        missing_votes: Vec::new(),
        independent: None,
        chance: Chance {
            share: 0.54,
            low: 0.4,
            high: 0.67,
            source: Source::Published { agreeing: 2, of: 3 },
        },
        of: None,
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
        fail_on: None,
        left_out: Vec::new(),
        dismissed: Default::default(),
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
            let (mut in_code, mut in_quote) = (false, false);
            for event in Parser::new_ext(&body, Options::all()) {
                match event {
                    Event::Html(html) | Event::InlineHtml(html) => panic!("{html} in {body}"),
                    // Members' text is in quotes of kd, which nothing in it can end or nest.
                    Event::Start(Tag::BlockQuote(_)) if !in_quote => in_quote = true,
                    Event::End(pulldown_cmark::TagEnd::BlockQuote(_)) => in_quote = false,
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

/// Texts that code hosts turn into links, notifications or pictures, anywhere in the visible text.
const REFERENCES: &[&str] = &[
    "@octocat",
    "@org/team",
    "@x",
    "#26",
    "GH-26",
    "gh-26",
    "GL-26",
    "owner/repo#1",
    "owner/repo!1",
    "group/project&1",
    "group/project$1",
    "owner/repo@0123456789abcdef0123456789abcdef01234567",
    "0123456789abcdef0123456789abcdef01234567",
    "ABCDEF0123456789ABCDEF0123456789ABCDEF01",
    "0123456",
    "9ba12248...b19a04f5",
    "PROJ-123",
    "CVE-2021-44228",
    "GHSA-jfh8-c2jp-5v3q",
    "!123",
    "~bug",
    "~\"a label\"",
    "%v1.0",
    "%\"a milestone\"",
    "$123",
    "&123",
    "^alert#1",
    "*iteration:\"x\"",
    "[vulnerability:1]",
    "[feature_flag:1]",
    "[contact:a@evil.example]",
    "[work_item:1]",
    "[[wiki]]",
    ":boom:",
    ":+1:",
    ":x:y:",
    "https://evil.example",
    "ssh://evil.example",
    "www.evil.example",
    "WWW.evil.example",
    "a@evil.example",
    "mailto:a@evil.example",
    "fixes #1",
];

/// Returns the reference that a code host would find in a text, after Markdown.
fn reference(text: &str) -> Option<&str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let mut found = starts.filter(|at| is_reference(&text[*at..], &text[..*at]));
    found.next().map(|at| &text[at..])
}

/// Returns whether a reference begins with this text, which follows another.
fn is_reference(text: &str, before: &str) -> bool {
    let run = |text: &str, is: fn(char) -> bool| text.chars().take_while(|c| is(*c)).count();
    let first = text.chars().next().unwrap_or_default();
    let rest = &text[first.len_utf8()..];
    let next = rest.chars().next().unwrap_or_default();
    let word = run(text, |c| c.is_ascii_alphanumeric() || c == '_');
    let begins = !before.ends_with(|c: char| c.is_ascii_alphanumeric());
    let after_dash = text[word..].strip_prefix('-');
    let issue = after_dash.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let tracker = text[..word]
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let host = ["gh", "gl"].contains(&text[..word].to_lowercase().as_str());
    let advisory = text
        .strip_prefix("GHSA-")
        .is_some_and(|rest| run(rest, |c| c.is_alphanumeric()) > 3);
    let brackets = run(rest, |c| c.is_ascii_lowercase() || c == '_');
    let emoji = run(rest, |c| c.is_ascii_alphanumeric() || "+-_".contains(c));
    match first {
        '@' => next.is_alphanumeric(),
        '#' | '!' | '$' | '&' | '~' | '%' | '^' | '*' => next.is_alphanumeric() || next == '"',
        '[' => next == '[' || brackets > 0 && rest[brackets..].starts_with(':'),
        ':' => rest.starts_with("//") || emoji > 0 && rest[emoji..].starts_with(':'),
        _ if run(text, |c| c.is_ascii_hexdigit()) >= 7 => true,
        _ if text.to_lowercase().starts_with("www.") => true,
        _ => begins && (advisory || issue && word > 1 && (tracker || host)),
    }
}

#[test]
fn nothing_that_members_write_is_a_reference_for_a_code_host() {
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
    for one in REFERENCES {
        assert!(reference(one).is_some(), "the patterns do not know {one}");
        for around in ["{}", "see {}.", "({})", "a {}, b", "x\n{}"] {
            let said = around.replace("{}", one);
            let kept = kept(&[&said]);
            for body in rendered(&kept) {
                // A reader sees adjacent texts as one.
                let mut text = String::new();
                let mut code = 0;
                for event in Parser::new_ext(&body, Options::all()) {
                    match event {
                        Event::Start(Tag::CodeBlock(_)) => code += 1,
                        Event::End(TagEnd::CodeBlock) => code -= 1,
                        Event::Text(part) if code == 0 => text.push_str(&part),
                        Event::Code(_) | Event::SoftBreak | Event::HardBreak => text.push(' '),
                        Event::End(_) => text.push('\n'),
                        _ => {}
                    }
                }
                assert_eq!(reference(&text), None, "{said:?} in {text:?} of {body}");
            }
        }
    }
    // Plain words stay as they are.
    for plain in ["a read-only list", "std::vec", "a: b", "1 - 2", "x.rs:12"] {
        assert!(!markdown::text(plain).contains('\u{200b}'), "{plain}");
    }
}

#[test]
fn line_numbers_of_a_report_from_elsewhere_are_only_numbers() {
    let numbers = [0, 1, 2, 41, u32::MAX - 1, u32::MAX];
    let pairs = numbers.iter().flat_map(|a| numbers.map(|b| (*a, b)));
    for (first, last) in pairs {
        let mut kept = kept(&["a claim"]);
        kept.places[0].rows = vec![(first, last, Some(last)), (last, first, Some(u32::MAX))];
        kept.places[0].file = "a claim".into();
        let about = &mut kept.report.findings[0].cluster.findings[0].finding;
        about.lines = Lines { first, last };
        about.quote = "one\ntwo\nthree".into();
        for format in FORMATS {
            assert!(
                !output(&kept, format).is_empty(),
                "{first} {last} {format:?}"
            );
        }
    }
}

#[test]
fn files_that_members_did_not_see_are_in_every_format() {
    let mut kept = kept(&[]);
    let long = "x ".repeat(2000);
    kept.left_out = vec![kept::LeftOut::binary("src/a b.png", false)];
    kept.report.notices = vec!["not reviewed (binary): src/a b.png".into()];
    // A longer text of others does not displace it.
    kept.report.members[2].failed = Some(long.clone());
    let far = finding(&long, "src/far.rs", 7);
    kept.report.findings = (0..99)
        .map(|n| reported(&format!("f{n}"), &["ann", "bob"], &far))
        .collect();
    for format in FORMATS {
        let text = output(&kept, format).replace('\\', "");
        assert!(text.contains("src/a b.png"), "{format:?}");
    }
    let sarif: serde_json::Value =
        serde_json::from_str(&output(&kept, Format::Sarif)).expect("JSON");
    let told = &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    let uri = "/locations/0/physicalLocation/artifactLocation/uri";
    let mut told = told.as_array().expect("a list").iter();
    assert!(told.any(|one| one.pointer(uri) == Some(&"src/a%20b.png".into())));
}

const FORMATS: [Format; 7] = [
    Format::Terminal,
    Format::Markdown,
    Format::Sarif,
    Format::Json,
    Format::JsonlEvents,
    Format::Github,
    Format::Gitlab,
];

/// Returns what a user, a file or a program gets in this format.
fn output(kept: &Kept, format: Format) -> String {
    match format {
        Format::Terminal => terminal(kept, true, Styles::NONE, 80).join("\n"),
        format => document(kept, format, true).expect("text"),
    }
}

/// Returns whether a CI runner of a code host reads a line as a command. The runner trims white space, and recognizes
/// the older form anywhere in a line.
fn is_build_command(line: &str) -> bool {
    let line = line.trim();
    let named = |line: &str| {
        let name = line.split([' ', ':', ']']).next().unwrap_or_default();
        name.chars().any(char::is_alphabetic)
    };
    line.strip_prefix("::").is_some_and(named)
        || line.contains("##vso[")
        || line.split("##[").skip(1).any(named)
}

/// Checks what must hold in every format, whatever members and the change contain.
fn harmless(text: &str, format: Format, about: &str) {
    let at = format!("{about:?} as {format:?}: {text}");
    for line in text.lines() {
        assert!(!is_build_command(line), "{line:?} in {at}");
        let odd = |c: char| c.is_control() || crate::render::clean::is_unsafe(c);
        assert!(!line.contains(odd), "{line:?} in {at}");
    }
    if format == Format::Terminal {
        // A finding begins at the margin, and nobody else can write there.
        let heads = text.lines().filter(|line| line.starts_with("MAJOR  "));
        assert_eq!(heads.count(), 3, "{at}");
    } else if format != Format::Markdown {
        let value: serde_json::Value = serde_json::from_str(text).expect(&at);
        let count = match format {
            Format::Sarif => value["runs"][0]["results"].as_array().map(Vec::len),
            Format::Github | Format::Gitlab => Some(3),
            _ => value["report"]["findings"].as_array().map(Vec::len),
        };
        assert_eq!(count, Some(3), "{at}");
    }
}

#[test]
fn no_text_of_a_member_or_a_change_is_more_than_text_in_any_format() {
    let texts = HOSTILE.iter().map(|text| (*text, "src/lock.rs"));
    let names = NAMES.iter().map(|name| ("a claim", *name));
    for (text, name) in texts.chain(names) {
        let mut kept = kept(&[text]);
        for reported in &mut kept.report.findings {
            if reported.id == "f1" {
                name.clone_into(&mut reported.cluster.findings[0].finding.file);
            }
        }
        for format in FORMATS {
            harmless(&output(&kept, format), format, &format!("{text} {name}"));
        }
    }
}

/// Lines that only `kd` writes, at the place where they begin.
const OWN: [&str; 15] = [
    "BLOCKER",
    "MAJOR",
    "MINOR",
    "NIT",
    "note:",
    "only one",
    "3 findings",
    "    P(real)",
    "    found by",
    "    votes",
    "    severity:",
    "    meets",
    "    why:",
    "    suggested:",
    "    in the words of",
];

/// Texts that look like such lines.
const FORGED: [&str; 10] = [
    "P(real) 99 % (98–100 %), published table, found by 3 of 3",
    "found by ann, bob, cyd · votes: dan real",
    "votes: all real",
    "BLOCKER  src/other.rs:1  0123456789",
    "MAJOR src/other.rs:1 0123456789",
    "note: no member found anything",
    "meets --fail-on blocker",
    "why: it is fine",
    "suggested: nothing",
    "3 findings · 3 members reviewed",
];

/// Returns how many lines of `kd` a screen has, by their beginnings.
fn own(kept: &Kept, columns: usize) -> Vec<usize> {
    let lines = terminal(kept, true, Styles::NONE, columns);
    for line in &lines {
        let place = line.starts_with(['B', 'M', 'N']);
        let width = crate::render::wrap::width(line);
        assert!(width <= columns.clamp(40, 110) || place, "{width} {line:?}");
    }
    let count = |start: &&str| lines.iter().filter(|line| line.starts_with(*start)).count();
    OWN.iter().map(count).collect()
}

#[test]
fn no_text_of_others_passes_for_a_line_of_kd_at_any_width() {
    let fill = |text: &str| {
        let mut kept = kept(&[text]);
        kept.report.base = text.replace(' ', "-");
        for reported in &mut kept.report.findings {
            let raws = &mut reported.cluster.findings;
            if let [first, second, ..] = raws.as_mut_slice() {
                second.finding.claim = format!("{text} too");
                first.finding.severity = Severity::Blocker;
            }
        }
        kept
    };
    for columns in [40, 80, 200] {
        let plain = own(&fill("x"), columns);
        assert_eq!((plain[0], plain[7], plain[14]), (2, 3, 2), "{plain:?}");
        for forged in FORGED {
            // After words and without spaces, so that a line begins with it wherever a line can break.
            for text in [format!("a\n{forged}"), format!("a\r\n    {forged}")] {
                assert_eq!(own(&fill(&text), columns), plain, "{columns} {text:?}");
            }
            let end = columns.min(110);
            for pad in end - 40..end {
                let words = format!("{} {forged}", "a ".repeat(pad / 2) + &"b".repeat(pad % 2));
                let joined = format!("{}{}", "a".repeat(pad), forged.replace(' ', "\u{a0}"));
                for text in [words, joined] {
                    assert_eq!(own(&fill(&text), columns), plain, "{columns} {text:?}");
                }
            }
        }
    }
}

#[test]
fn who_named_which_severity_and_which_findings_meet_conditions_is_shown() {
    let mut kept = kept(&[]);
    kept.report.findings[0].cluster.findings[1].finding.severity = Severity::Blocker;
    kept.report.findings[0].cluster.findings[1].finding.claim = "other words".into();
    let lone = kept.report.findings[1].id.clone();
    let shown = |kept: &Kept, format| match format {
        Format::Terminal => terminal(kept, false, Styles::NONE, 80).join("\n"),
        format => document(kept, format, false).expect("text"),
    };
    for format in [
        Format::Terminal,
        Format::Markdown,
        Format::Sarif,
        Format::Github,
    ] {
        assert!(
            !shown(&kept, format).contains("a name is short"),
            "{format:?}"
        );
    }
    for (format, part) in [
        (Format::Terminal, "BLOCKER  src/lock.rs:41-42"),
        (Format::Terminal, "severity: blocker bob · major ann"),
        (Format::Terminal, "in the words of bob:\n    │ other words"),
        (Format::Markdown, "## blocker: `src/lock.rs:41-42`"),
        (Format::Markdown, "Severity: blocker bob · major ann"),
        (Format::Sarif, "\"ruleId\": \"review/blocker\""),
        (Format::Github, "**blocker**"),
    ] {
        let text = shown(&kept, format);
        assert!(text.contains(part), "{part} in {text}");
    }
    let met = [(lone.clone(), vec!["nit".to_owned()])].into();
    kept.fail_on = Some(kept::FailOn {
        conditions: vec!["nit".into(), "P>=0.9".into()],
        met,
        ..kept::FailOn::default()
    });
    for (format, verdict) in [
        (
            Format::Terminal,
            "--fail-on nit or P>=0.9 is met by 1 finding: a1",
        ),
        (Format::Markdown, "is met by 1 finding"),
        (
            Format::Sarif,
            "--fail-on nit or P>=0.9 is met by 1 finding: a1",
        ),
        (Format::Json, "\"a1\": [\n        \"nit\""),
        (Format::Github, "is met by 1 finding"),
    ] {
        let text = shown(&kept, format);
        let text = text.replace('\\', "");
        assert!(text.contains(verdict), "{verdict} in {text}");
        assert!(
            text.contains("a name is short"),
            "it explains the exit code: {text}"
        );
    }
    assert!(shown(&kept, Format::Terminal).contains("    meets --fail-on nit"));
    let met = [(lone.clone(), vec!["nit".to_owned(), "P>=0.1".to_owned()])].into();
    kept.fail_on = Some(kept::FailOn {
        conditions: vec!["nit".into(), "P>=0.1".into()],
        met,
        ..kept::FailOn::default()
    });
    // A comma would look like one condition that names both.
    for (format, part) in [
        (Format::Terminal, "meets --fail-on nit and --fail-on P>=0.1"),
        (
            Format::Markdown,
            "Meets `--fail-on nit and --fail-on P>=0.1`",
        ),
    ] {
        let text = shown(&kept, format);
        assert!(text.contains(part), "{part} in {text}");
    }
    kept.fail_on = Some(kept::FailOn {
        conditions: vec!["blocker".into()],
        ..kept::FailOn::default()
    });
    assert!(shown(&kept, Format::Terminal).contains("--fail-on blocker is met by no finding"));
    kept.fail_on = Some(kept::FailOn {
        conditions: vec!["blocker".into()],
        unseen: (1..8).map(|at| format!("{at}.py")).collect(),
        ..kept::FailOn::default()
    });
    let text = shown(&kept, Format::Terminal);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "by no finding; not checked, because no member saw it: 1.py, 2.py, 3.py, 4.py, 5.py and 2 more";
    assert!(words.contains(told), "{text}");
}

#[test]
fn a_finding_at_a_place_that_the_diff_does_not_show_is_no_comment() {
    for name in NAMES {
        let mut kept = kept(&["a claim"]);
        kept.report.findings[0].cluster.findings[0].finding.file = (*name).into();
        for (format, path) in [
            (Format::Github, "/path"),
            (Format::Gitlab, "/position/new_path"),
        ] {
            let text = output(&kept, format);
            let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let comments = value["comments"].as_array().or(value.as_array());
            for comment in comments.expect("comments") {
                let path = comment.pointer(path).and_then(|path| path.as_str());
                assert!(
                    matches!(path, None | Some("src/lock.rs")),
                    "{name:?}: {path:?}"
                );
            }
        }
    }
}

#[test]
fn a_review_of_many_findings_fits_into_what_a_code_host_takes() {
    let long = "x ".repeat(2000);
    let mut many = kept(&[]);
    let one = finding(&long, "src/far.rs", 7);
    many.report.findings = (0..200)
        .map(|n| reported(&format!("f{n}"), &["ann", "bob"], &one))
        .collect();
    many.report.notices = vec![long; 20];
    for body in rendered(&many).iter().skip(1) {
        assert!(body.chars().count() < 65_536, "{}", body.len());
        assert!(body.contains("Left out for their length: 19"), "{body}");
    }
}

#[test]
fn members_that_gave_no_review_and_dropped_findings_are_in_every_format() {
    let mut none = kept(&["no key"]);
    for format in FORMATS {
        for line in [
            "cyd gave no review: no key",
            "dropped 1 finding of bob: not in the code",
        ] {
            let shown = output(&none, format).replace('\\', "");
            let said = shown.contains(line)
                || matches!(format, Format::Json | Format::JsonlEvents) && shown.contains("no key");
            assert!(said, "{line} in {format:?}: {shown}");
        }
    }
    none.report.findings.clear();
    for member in &mut none.report.members {
        member.failed = Some("no key".into());
    }
    for format in FORMATS {
        let shown = output(&none, format);
        let is_told = match format {
            Format::Json | Format::JsonlEvents => shown.contains("\"failed\""),
            Format::Sarif => shown.contains("\"executionSuccessful\": false"),
            _ => shown.contains("no review") && shown.contains("0 of 3 members reviewed"),
        };
        assert!(is_told, "{format:?}: {shown}");
        assert!(!shown.contains("no finding"), "{format:?}: {shown}");
    }
}

#[test]
fn sarif_is_valid_and_its_paths_stay_in_the_tree() {
    let schema = include_str!("../../../tests/data/sarif-2.1.0.schema.json");
    // The official file has a pattern with a bare `]`, which strict regex parsers reject.
    let schema = schema.replace("{2}]?$", r"{2}\\]?$");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mut unseen = kept(&[]);
    unseen.left_out = vec![kept::LeftOut::binary("../a b\\..\\c", false)];
    for kept in [
        unseen,
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
                assert!(result["partialFingerprints"]["kdFinding/v2"].is_string());
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
fn sarif_tells_what_other_formats_tell() {
    let mut kept = kept(&[]);
    kept.report.members[1].failed = Some("no answer".into());
    kept.report.notices = vec!["ann did not vote on any finding".into()];
    let log = |kept: &Kept| -> serde_json::Value {
        serde_json::from_str(&document(kept, Format::Sarif, true).expect("text")).expect("JSON")
    };
    let run = &log(&kept)["runs"][0]["invocations"][0];
    assert_eq!(run["executionSuccessful"], false);
    let told = run["toolExecutionNotifications"]
        .as_array()
        .expect("notifications");
    for (level, text) in [
        ("warning", "bob gave no review: no answer"),
        ("warning", "dropped 1 finding of ann: not in the code"),
        ("note", "ann did not vote on any finding"),
    ] {
        let one = serde_json::json!({"level": level, "message": {"text": text}});
        assert!(told.contains(&one), "{text} in {told:?}");
    }
    kept.report.members[1].failed = None;
    let whole = &log(&kept)["runs"][0]["invocations"][0];
    assert_eq!(whole["executionSuccessful"], true);
}

#[test]
fn sarif_numbers_findings_of_the_same_lines() {
    let mut kept = kept(&[]);
    let one = finding("one", "src/lock.rs", 41);
    let other = Finding {
        claim: "another defect".into(),
        ..one.clone()
    };
    kept.report.findings = vec![
        reported("a", &["ann", "bob"], &one),
        reported("b", &["ann", "bob"], &other),
    ];
    let text = document(&kept, Format::Sarif, true).expect("text");
    let log: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    let print = |at: usize| {
        let print = &results[at]["partialFingerprints"]["kdFinding/v2"];
        print.as_str().expect("a fingerprint").to_owned()
    };
    let (first, second) = (print(0), print(1));
    let same = first.strip_suffix(":1").expect(&first);
    assert_eq!(second, format!("{same}:2"));
}

#[test]
fn a_report_without_a_base_names_one_side() {
    let mut kept = kept(&[]);
    kept.report.base.clear();
    kept.report.head = "stdin".into();
    assert!(output(&kept, Format::Terminal).contains("reviewed · stdin · 2 files"));
    assert!(output(&kept, Format::Markdown).starts_with("# Review of stdin\n"));
}

#[test]
fn the_first_of_wrapped_lines_has_all_columns() {
    let text = "1 finding · 3 members reviewed · main to the working tree · 2 files, +5 -7 and a few words more";
    for columns in 40..text.len() {
        let lines = hung(text, columns);
        let all: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        assert_eq!(all.join(" "), text, "{columns}");
        let [first, second, ..] = lines.as_slice() else {
            continue;
        };
        let next = second.split_whitespace().next().expect("a word");
        let width = first.chars().count() + 1 + next.chars().count();
        assert!(width > columns, "{columns}: {first} | {next}");
        assert!(lines[1..].iter().all(|line| line.starts_with("      ")));
        assert!(lines.iter().all(|line| line.chars().count() <= columns));
    }
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

#[test]
fn finders_of_one_model_are_said_to_count_once() {
    let mut one = kept(&["a claim"]);
    one.report.findings[0].independent = Some(1);
    for format in [
        Format::Terminal,
        Format::Markdown,
        Format::Sarif,
        Format::Github,
    ] {
        let text = match format {
            Format::Terminal => terminal(&one, false, Styles::NONE, 110).join("\n"),
            format => document(&one, format, false).expect("text"),
        };
        let told = "its 2 finders are of one model or vendor, and count once";
        assert!(text.contains(told), "{text}");
    }
}
