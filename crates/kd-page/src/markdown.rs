//! Renders members' Markdown as safe HTML: none of their tags is markup, nothing is fetched, and links lead only to the
//! web or a mail address.

use crate::marked::{self, Passages, Piece};
use kd_core::clean::clean_text;
use kd_core::markdown::{bounded, hidden_parts};
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

/// Supported extensions of CommonMark.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);
/// Allowed link schemes.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];
/// Elements that may be wider than the page, and their replacement.
const SCROLLING: [(&str, &str); 3] = [
    ("<pre>", "<pre tabindex=\"0\">"),
    ("<table>", "<div class=\"wide\" tabindex=\"0\"><table>"),
    ("</table>", "</table></div>"),
];
/// Headings of a message start at this level: higher ones belong to the page.
const TOP: usize = 3;

/// Renders the text as HTML.
pub fn render(text: &str) -> Markup {
    render_marked(text, &[])
}

/// Renders the text as HTML, with marks around passages. Their places are those in the [`source`].
pub(crate) fn render_marked(text: &str, passages: &Passages) -> Markup {
    let source = source(text);
    let mut out = String::with_capacity(source.len() * 5 / 4);
    let mut open = Open::default();
    let events = parser(&source);
    if passages.is_empty() {
        let events = events.filter_map(|event| harmless(event, &mut open));
        pulldown_cmark::html::push_html(&mut out, events);
    } else {
        let pieces = marked::mark(events.into_offset_iter(), passages).into_iter();
        let events = pieces.filter_map(|piece| match piece {
            Piece::Event(event) => harmless(event, &mut open),
            Piece::Open(id) => {
                let mark = html! { mark.words id=[id] { "" } }.into_string();
                let mark = mark.strip_suffix("</mark>").unwrap_or_default();
                Some(Event::InlineHtml(mark.to_owned().into()))
            }
            Piece::Close => Some(Event::InlineHtml("</mark>".into())),
        });
        pulldown_cmark::html::push_html(&mut out, events);
    }
    // What scrolls can be reached by key. No text contains these: it is escaped.
    for (tag, wrapped) in SCROLLING {
        if out.contains(tag) {
            out = out.replace(tag, wrapped);
        }
    }
    let hidden = hidden_parts(&source, OPTIONS);
    if !hidden.is_empty() {
        let hidden = html! {
            p { "Not shown by Markdown:" @for part in &hidden { " " code { (part.text) } } }
        };
        out.push_str(&hidden.into_string());
        out.push('\n');
    }
    PreEscaped(out)
}

/// Returns the part of a text that is parsed.
pub(crate) fn source(text: &str) -> String {
    bounded(&clean_text(text)).into_owned()
}

/// Parses a [`source`].
pub(crate) fn parser(source: &str) -> Parser<'_> {
    Parser::new_ext(source, OPTIONS)
}

/// The elements that are open while a text is rendered.
#[derive(Default)]
struct Open {
    /// The address of each open link that is not allowed: it is shown as text.
    links: Vec<Option<String>>,
    /// The address of each open image, which is shown as text.
    images: Vec<String>,
    /// The levels of the headings above, as in the text.
    above: Vec<HeadingLevel>,
}

impl Open {
    /// Opens a heading, and returns its level in the page: no level is left out, whatever the text begins with.
    fn heading(&mut self, level: HeadingLevel) -> HeadingLevel {
        self.above.retain(|above| *above < level);
        self.above.push(level);
        self.level()
    }

    /// Returns the level of the last heading in the page.
    fn level(&self) -> HeadingLevel {
        let below = (self.above.len() + TOP - 1).min(6);
        HeadingLevel::try_from(below).unwrap_or(HeadingLevel::H6)
    }
}

/// Returns the event without anything a browser would act on.
fn harmless<'a>(event: Event<'a>, open: &mut Open) -> Option<Event<'a>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
            level: open.heading(level),
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(open.level())),
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            ..
        }) => {
            let mail = link_type == LinkType::Email;
            let to = match mail {
                true => CowStr::from(format!("mailto:{dest_url}")),
                false => dest_url,
            };
            let goes_out = goes_out(&to);
            open.links.push((!goes_out).then(|| to.to_string()));
            if !goes_out {
                return None;
            }
            let tag =
                html! { a href=(&*to) rel="noopener noreferrer nofollow" target="_blank" { "" } };
            let tag = tag.into_string();
            Event::InlineHtml(
                tag.strip_suffix("</a>")
                    .unwrap_or_default()
                    .to_owned()
                    .into(),
            )
        }
        Event::End(TagEnd::Link) => match open.links.pop()? {
            Some(to) => Event::Text(format!(" ({to})").into()),
            None => Event::InlineHtml("</a>".into()),
        },
        // Column alignment would need style attributes on cells.
        Event::Start(Tag::Table(_)) => Event::Start(Tag::Table(Vec::new())),
        // Show its description and its address as text.
        Event::Start(Tag::Image { dest_url, .. }) => {
            open.images.push(dest_url.into_string());
            Event::Text("[image: ".into())
        }
        Event::End(TagEnd::Image) => {
            let to = open.images.pop().unwrap_or_default();
            Event::Text(format!(" ({to})]").into())
        }
        event => event,
    })
}

/// Returns whether a link leads to the web or a mail address.
fn goes_out(to: &str) -> bool {
    let begins = |scheme: &&str| {
        to.get(..scheme.len())
            .is_some_and(|b| b.eq_ignore_ascii_case(scheme))
    };
    SCHEMES.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_leave_out_no_level() {
        for (text, levels) in [
            ("# A\n## B\n# C", vec![3, 4, 3]),
            ("## A\n### B\n## C\n# D", vec![3, 4, 3, 3]),
            ("# A\n#### B\n###### C\n### D\n## E", vec![3, 4, 5, 4, 4]),
            ("# A\n## B\n### C\n#### D\n##### E", vec![3, 4, 5, 6, 6]),
        ] {
            let html = render(text).into_string();
            let opened = html
                .split("<h")
                .skip(1)
                .map(|rest| rest[..1].parse::<u32>().unwrap());
            assert_eq!(opened.collect::<Vec<_>>(), levels, "{text:?}: {html}");
            for level in 3..=6 {
                let count = |tag: String| html.matches(&tag).count();
                assert_eq!(
                    count(format!("<h{level}>")),
                    count(format!("</h{level}>")),
                    "{html}"
                );
            }
        }
    }

    /// All tags that a rendered message may contain.
    const TAGS: [&str; 27] = [
        "mark",
        "p",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "em",
        "strong",
        "del",
        "code",
        "pre",
        "blockquote",
        "a",
        "br",
        "hr",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "input",
        "sup",
        "div",
    ];

    /// Returns the tags of a text, with their attributes.
    fn tags(html: &str) -> Vec<String> {
        let parts = html.split('<').skip(1);
        parts
            .map(|part| part.split('>').next().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn nothing_that_a_member_writes_is_markup() {
        let hostile = [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div onclick=\"x\">\n\n**b**\n\n</div>",
            "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](data:text/html,<script>) [w](file:///etc/passwd)",
            "[x](vbscript:a) [rel](other.html) [frag](#m3) [proto](//evil.example/x)",
            "[q](https://a.example/\"onmouseover=\"x) [t](https://a.example 'title\" onx=\"')",
            "![pic](https://evil.example/pixel.png) [![in](https://e.example/i.png)](https://a.example)",
            "<https://a.example/<b>> <mail@a.example> <javascript:alert(1)>",
            "# <style>*{display:none}</style>",
            "```js\" onclick=\"x\n</code></pre><script>1</script>\n```",
            "```<script>\nx\n```",
            "| a | <b> |\n|:--|--:|\n| <iframe src=x> | `</td>` |",
            "# h {#id .class onclick=x}\n\n[^1]: foot\n\n[^1]",
            "&lt;script&gt; &#60;script&#62; &#x3c;b&#x3e;",
            "<!-- c --> <?php ?> <!DOCTYPE html> <![CDATA[ x ]]>",
            "<details><summary>x</summary></details>\n<form action=x><input></form>",
            "- [ ] <input autofocus onfocus=x>\n- [x] done",
            "\u{202e}evil\u{2066}x\u{1b}[31m",
        ];
        // The same with marks at every sentence, and where no sentence is.
        let marked = hostile.iter().map(|text| {
            let sentences = crate::passage::Sentences::of(text);
            let ranges = (0..99)
                .map(|at| sentences.range(at))
                .filter(|range| !range.is_empty());
            let passages: Vec<_> = ranges.map(|range| (range, "m1s1".to_owned())).collect();
            render_marked(text, &passages).into_string()
        });
        let odd = hostile.iter().map(|text| {
            render_marked(text, &[(1..3, "a".into()), (4..7, "b".into())]).into_string()
        });
        let plain = hostile.iter().map(|text| render(text).into_string());
        for html in plain.chain(marked).chain(odd) {
            assert_eq!(
                html.matches("<mark").count(),
                html.matches("</mark>").count(),
                "{html}"
            );
            for tag in tags(&html) {
                let name = tag
                    .trim_start_matches('/')
                    .split([' ', '/'])
                    .next()
                    .unwrap_or_default();
                assert!(TAGS.contains(&name), "{name} in {html}");
                let bare = tag.replace("&quot;", "");
                assert!(
                    !bare.contains(" on") || bare.starts_with("code class="),
                    "{tag}"
                );
                assert!(!tag.contains("style="), "{tag}");
                if let Some((_, href)) = tag.split_once("href=\"") {
                    assert!(goes_out(href), "{tag}");
                }
                assert!(!tag.contains("src="), "{tag}");
            }
            assert!(!html.contains(['\u{202e}', '\u{2066}', '\u{1b}']), "{html}");
        }
        assert_eq!(
            render("[x](javascript:1) and ![pic](https://a.example/p.png)").into_string(),
            "<p>x (javascript:1) and [image: pic (https://a.example/p.png)]</p>\n"
        );
        assert_eq!(
            render("[x](https://a.example/?a=1&b=\"2)").into_string(),
            "<p><a href=\"https://a.example/?a=1&amp;b=&quot;2\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">x</a></p>\n"
        );
    }

    #[test]
    fn no_part_of_a_text_is_hidden() {
        for text in [
            "Seen.\n\n[//]: # (vote yes)\n",
            "Seen.\n\n[ref]: http://a.example/x \"vote yes\"\n",
            "Seen.\n\n```vote yes\ncode\n```\n",
            "Seen. [safe](https://a.example \"vote yes\")\n",
            "|Seen|\n|-|\n|1|vote yes|\n",
            "Seen.\n```vote yes",
        ] {
            let html = render(text).into_string();
            let (before, after) = html.split_once("Not shown by Markdown:").unwrap();
            assert!(before.contains("Seen"), "{html}");
            assert!(after.contains("vote yes"), "{html}");
        }
    }

    #[test]
    fn passages_are_marked_within_the_markup_around_them() {
        let mark = |text: &str, words: &[&str]| {
            let passages: Vec<_> = words
                .iter()
                .enumerate()
                .map(|(at, words)| {
                    let start = text.find(words).expect("it has these words");
                    (start..start + words.len(), format!("s{at}"))
                })
                .collect();
            render_marked(text, &passages).into_string()
        };
        for (text, words, html) in [
            (
                "a b. c d.",
                &["c d."][..],
                "<p>a b. <mark class=\"words\" id=\"s0\">c d.</mark></p>\n",
            ),
            (
                "**A b.** c",
                &["**A b.**"],
                "<p><mark class=\"words\" id=\"s0\"><strong>A b.</strong></mark> c</p>\n",
            ),
            (
                "**A b. C** d. e",
                &["C** d."],
                "<p><strong>A b. <mark class=\"words\" id=\"s0\">C</mark></strong><mark class=\"words\"> d.</mark> e</p>\n",
            ),
            (
                "x *y* `z` ü. [l](https://a.example). n",
                &["x *y* `z` ü.", "[l](https://a.example)."],
                "<p><mark class=\"words\" id=\"s0\">x <em>y</em> <code>z</code> ü.</mark> <mark class=\"words\" id=\"s1\"><a href=\"https://a.example\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">l</a>.</mark> n</p>\n",
            ),
            (
                "- a\n- b &amp; c",
                &["b &amp; c"],
                "<ul>\n<li>a</li>\n<li><mark class=\"words\" id=\"s0\">b &amp; c</mark></li>\n</ul>\n",
            ),
        ] {
            assert_eq!(mark(text, words), html);
        }
    }

    #[test]
    fn what_people_write_looks_as_they_meant() {
        let html = render(
            "# Title\n\n**b** *i* ~~s~~ `c`\n\n- a\n- b\n\n|x|y|\n|-|-|\n|1|2|\n\n```rust\nlet a = 1 < 2;\n```\n",
        );
        insta::assert_snapshot!(html.into_string());
    }
}
