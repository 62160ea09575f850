//! Markdown designed to be slow: nesting, repetition, unclosed constructs. Every case is rendered at two sizes.

use kd_tui::text::markdown::lines;
use kd_tui::text::style::Styles;
use std::time::Instant;

type Case = (&'static str, fn(usize) -> String);

fn many(piece: &str, bytes: usize) -> String {
    piece.repeat(bytes / piece.len())
}

const CASES: &[Case] = &[
    ("quotes", |n| many(">", n)),
    ("quotes apart", |n| many("> ", n)),
    ("lines of quotes", |n| {
        many(&format!("{}x\n", ">".repeat(40)), n)
    }),
    ("bullets", |n| many("- ", n)),
    ("numbers", |n| many("1. ", n)),
    ("quotes and bullets", |n| many("> - ", n)),
    ("stairs", |n| stairs(n)),
    ("stairs, then blank lines", |n| {
        stairs(n / 2) + &"\n".repeat(n / 2)
    }),
    ("stairs, then words", |n| {
        stairs(n / 2) + &many("x\n", n / 2)
    }),
    ("lazy lines", |n| many("> a\nb\n", n)),
    ("quotes of one line", |n| many("> a\n\n", n)),
    ("items", |n| many("- a\n", n)),
    ("loose items", |n| many("- a\n\n", n)),
    ("empty items", |n| many("-\n", n)),
    ("tasks", |n| many("- [ ] a\n", n)),
    ("stars", |n| many("*", n)),
    ("open emphasis", |n| many("*a ", n)),
    ("open strong", |n| many("**a ", n)),
    ("mixed emphasis", |n| many("*a_ ", n)),
    ("nested emphasis", |n| {
        many("*a", n / 2) + &many("b*", n / 2)
    }),
    ("stars and underscores", |n| many("*_", n)),
    ("a**b", |n| many("a**b", n)),
    ("c*", |n| many("a*b_c~~", n)),
    ("struck", |n| many("~~a ", n)),
    ("brackets", |n| many("[", n)),
    ("closed brackets", |n| many("[", n / 2) + &many("]", n / 2)),
    ("open links", |n| many("[a](", n)),
    ("open links in angles", |n| many("[a](<b", n)),
    ("links", |n| many("[a](b) ", n)),
    ("nested images", |n| {
        many("![", n / 5) + "a" + &many("](b)", n * 4 / 5)
    }),
    ("images", |n| many("![a](b) ", n)),
    ("definitions", |n| {
        (0..n / 10).map(|i| format!("[{i}]: b\n")).collect()
    }),
    ("same definition", |n| many("[a]: b\n", n)),
    ("references", |n| "[a]: b\n\n".to_owned() + &many("[a] ", n)),
    ("open references", |n| many("[a][", n)),
    ("open titles", |n| many("[a](b \"", n)),
    ("open definitions", |n| many("[a]: b \"\n", n)),
    ("backticks", |n| many("`", n)),
    ("rising backticks", |n| {
        (1..)
            .map(|i| "`".repeat(i) + " ")
            .scan(0, move |all, s| {
                *all += s.len();
                (*all < n).then_some(s)
            })
            .collect()
    }),
    ("open code", |n| many("`a ``b ", n)),
    ("fences", |n| many("```\n", n)),
    ("open fence", |n| "```\n".to_owned() + &many("a\n", n)),
    ("fence of long marks", |n| {
        many("`", n / 2) + "\n" + &many("`", n / 2)
    }),
    ("less than", |n| many("<", n)),
    ("open tags", |n| many("<a ", n)),
    ("open attributes", |n| many("<a b='", n)),
    ("open comments", |n| many("<!--", n)),
    ("open instructions", |n| many("<?", n)),
    ("open data", |n| many("<![CDATA[", n)),
    ("open declarations", |n| many("<!A ", n)),
    ("closing tags", |n| many("</a", n)),
    ("blocks of HTML", |n| many("<div>\n", n)),
    ("tags over lines", |n| many("x <a\n", n)),
    ("autolinks", |n| many("<http://a>", n)),
    ("entities", |n| many("&", n)),
    ("numbers of characters", |n| many("&#", n)),
    ("backslashes", |n| many("\\", n)),
    ("headings", |n| many("# a\n", n)),
    ("underlined headings", |n| many("a\n=\n", n)),
    ("long heading", |n| many("a\n", n) + "=="),
    ("rules", |n| many("***\n", n)),
    ("stars and blanks", |n| many("* * ", n)),
    ("tabs", |n| many("\t", n)),
    ("code by tabs", |n| many("\ta\n", n)),
    ("wide table", |n| {
        many("|a", n / 2) + "|\n" + &many("|-", n / 2) + "|\n" + "|\n|\n|\n"
    }),
    ("square table", |n| {
        let side = n / 3;
        many("|a", side) + "|\n" + &many("|-", side) + "|\n" + &many("|\n", side)
    }),
    ("long table", |n| {
        "|a|\n|-|\n".to_owned() + &many("|b|\n", n)
    }),
    ("table with a long head", |n| {
        format!("|{}|{}|\n|-|-|\n", many("a ", n / 2), many("word ", 200)) + &many("|b|c|\n", n / 2)
    }),
    ("records with a long head", |n| {
        let wide = "|abcdefghijklmnop".repeat(8);
        format!("|{}{wide}|\n{}|\n", many("word ", n / 2), "|-".repeat(9)) + &many("|b|c|\n", n / 2)
    }),
    ("pipes", |n| many("|", n)),
    ("pipes in lines", |n| many("a|b\n", n)),
    ("half tables", |n| many("|a|\n|-\n", n)),
    ("one word", |n| many("a", n)),
    ("wide words", |n| many("模", n)),
    ("marks above", |n| "a".to_owned() + &many("\u{301}", n)),
    ("families", |n| many("👩\u{200d}", n)),
    ("blank lines", |n| many("\n", n)),
    ("code: comments", |n| {
        "```rust\n".to_owned() + &many("/*", n)
    }),
    ("code: quotes", |n| {
        "```python\n".to_owned() + &many("\"\"\"", n)
    }),
    ("code: one line", |n| "```js\n".to_owned() + &many("a(", n)),
];

/// Returns lists nested as deeply as `bytes` bytes allow.
fn stairs(bytes: usize) -> String {
    let mut text = String::new();
    let mut deep = 0;
    while text.len() + 2 * deep + 4 < bytes {
        text += &format!("{}- x\n", "  ".repeat(deep));
        deep += 1;
    }
    text
}

/// Returns the number of lines and the bytes of all spans.
fn size(text: &str) -> (usize, usize) {
    let lines = lines(text, 80, Styles::NONE);
    let bytes = lines.iter().flatten().map(|span| span.text.len()).sum();
    (lines.len(), bytes)
}

/// The output is limited by the input: no case grows tenfold. A case that takes time quadratic in its length makes this
/// test run for minutes.
#[test]
fn hostile_markdown_makes_no_more_than_its_share() {
    for (name, case) in CASES {
        let text = case(30_000);
        let (lines, bytes) = size(&text);
        assert!(
            lines <= 2 * text.len() + 10,
            "{name}: {lines} lines of {} bytes",
            text.len()
        );
        assert!(
            bytes <= 200 * text.len(),
            "{name}: {bytes} bytes of {}",
            text.len()
        );
    }
}

/// Prints how time grows when the text doubles: about 2 is good, 4 is quadratic.
#[test]
#[ignore = "a measurement: cargo test -p kd-tui --test hostile_markdown -- --ignored --nocapture"]
fn how_time_grows() {
    let took = |text: &str| {
        let start = Instant::now();
        lines(text, 80, Styles::NONE);
        start.elapsed().as_secs_f64()
    };
    for (name, case) in CASES {
        let times = [10_000, 20_000, 40_000].map(|n| took(&case(n)));
        let ratio = times[2] / times[1].max(1e-6);
        let flag = if ratio > 2.8 && times[2] > 0.02 {
            "  <-- super-linear"
        } else {
            ""
        };
        println!(
            "{name:28} {:8.1} {:8.1} {:8.1} ms  x{ratio:.1}{flag}",
            times[0] * 1e3,
            times[1] * 1e3,
            times[2] * 1e3
        );
    }
}
