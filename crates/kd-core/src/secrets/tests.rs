//! Every shape with examples that are masked and examples that are not. Examples are assembled here, so that no file of
//! the repository contains anything that looks like a key.

use super::*;
use proptest::prelude::*;

/// Returns letters and digits that look random but are deterministic.
fn random(length: usize) -> String {
    let alphabet = b"a7Kq2ZmR9xLw4VtB8nYc3HdP6sGf5JjTe1UyQ";
    let at = |i: usize| char::from(alphabet[(i * 11 + i / 7) % alphabet.len()]);
    (0..length).map(at).collect()
}

fn upper(length: usize) -> String {
    random(length).to_ascii_uppercase()
}

/// Returns, for each row, texts that are masked with their masked form, and near misses.
fn examples(shape: &Shape, start: &str) -> (Vec<(String, String)>, Vec<String>) {
    let mask = format!("[secret: {}]", shape.id);
    match shape.body {
        Body::Run(_, min, max) => {
            let (make, ends): (fn(usize) -> String, usize) = match shape.id {
                "aws-access-key" => (upper, min),
                _ => (random, max.min(min + 9)),
            };
            let masked = format!("{start}{mask}");
            let hit = [min, ends].map(|n| (format!("{start}{}", make(n)), masked.clone()));
            let mut near = vec![
                format!("{start}{}", make(min - 1)),
                format!("x{start}{}", make(min)),
                format!("{start}{}", "A".repeat(min)),
                start.to_owned(),
            ];
            if max < 100 {
                near.push(format!("{start}{}", make(max + 1)));
            }
            // Excluded: near misses that a longer prefix of another row matches.
            near.retain(|text| !text.starts_with('x') || !start.contains(' '));
            (hit.into(), near)
        }
        Body::Jwt => {
            let part = random(20);
            (
                vec![(format!("eyJ{part}.eyJ{part}.{part}"), format!("eyJ{mask}"))],
                vec![
                    format!("eyJ{part}.eyJ{part}"),
                    format!("eyJ{part}.{part}.{part}"),
                    format!("xeyJ{part}.eyJ{part}.{part}"),
                    "eyJ.eyJ.x".to_owned(),
                ],
            )
        }
        Body::Pem => {
            let end = start.replace("BEGIN", "END");
            let lines = format!("{}\n{}", random(64), random(40));
            let mask = format!("{start}{mask}");
            (
                vec![
                    (format!("{start}\n{lines}\n{end}"), mask.clone()),
                    (format!("{start}\\n{}\\n{end}", random(64)), mask.clone()),
                    (format!("{start}\n{}", random(80)), mask),
                ],
                vec![
                    format!("grep -r {start} ."),
                    format!("{start}\n...\n{end}"),
                    format!("-----BEGIN PUBLIC KEY-----\n{lines}\n-----END PUBLIC KEY-----"),
                    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----"),
                ],
            )
        }
        Body::Address => (
            vec![
                (
                    "postgres://app:hunter2@db.example/x".to_owned(),
                    format!("postgres://app:{mask}@db.example/x"),
                ),
                (
                    "https://:s3cr3t!@example.org".to_owned(),
                    format!("https://:{mask}@example.org"),
                ),
            ],
            [
                "http://localhost:8080/@me",
                "https://user@example.org/a:b@c",
                "postgres://user:password@localhost/db",
                "https://user:$TOKEN@example.org",
                "https://user:${TOKEN}@example.org",
                "https://user:<token>@example.org",
                "https://user:****@example.org",
                "http://[::1]:80/",
                "std::io://x",
            ]
            .map(str::to_owned)
            .into(),
        ),
        Body::Assigned => (
            vec![(
                format!("{start} = \"{}\"", random(40)),
                format!("{start} = \"{mask}\""),
            )],
            vec![
                format!("{start} = \"{}\"", random(39)),
                format!("{start} = \"{}\"", random(41)),
                format!("{start}{}", random(40)),
                format!("{start} = \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\""),
                format!("{start}=$KEY"),
            ],
        ),
    }
}

fn pairs() -> impl Iterator<Item = (&'static Shape, &'static str)> {
    SHAPES
        .iter()
        .flat_map(|shape| shape.starts.iter().map(move |start| (shape, *start)))
}

#[test]
fn every_shape_is_masked_and_near_misses_are_not() {
    let secrets = Secrets::default();
    for (shape, start) in pairs() {
        let (hits, near) = examples(shape, start);
        assert!(!hits.is_empty() && near.len() >= 3, "{}", shape.id);
        for (text, expected) in hits {
            for (open, close) in [("", ""), ("see ", "."), ("k=\"", "\"\n"), ("é(", ")ü")] {
                let text = format!("{open}{text}{close}");
                let (masked, what) = secrets.mask(&text);
                assert_eq!(masked, format!("{open}{expected}{close}"), "{}", shape.id);
                assert_eq!(what.0, [(shape.label, 1)].into());
                let (again, nothing) = secrets.mask(&masked);
                assert_eq!(
                    (again.as_ref(), nothing.is_empty()),
                    (masked.as_ref(), true)
                );
            }
        }
        for text in near {
            let (masked, _) = secrets.mask(&text);
            assert_eq!(masked, text, "{} {start}", shape.id);
        }
    }
}

/// Escape sequences and characters that cleaning removes.
const HIDES: &[&str] = &[
    "\u{1b}[0m",
    "\u{1b}[01;31m",
    "\u{1b}[K",
    "\u{1b}]0;t\u{7}",
    "\u{7}",
    "\r",
    "\0",
    "\u{8}",
    "\u{200b}",
    "\u{200d}",
    "\u{2060}",
    "\u{feff}",
    "\u{ad}",
    "\u{e0041}",
    "\u{202e}",
    "\u{2066}",
];

#[test]
fn nothing_that_is_removed_later_hides_a_secret() {
    let own = "the-value-of-a-variable";
    let secrets = Secrets::new([own.to_owned()]);
    let rows = pairs().flat_map(|(shape, start)| examples(shape, start).0);
    let rows = rows.map(|(text, _)| text).chain([own.to_owned()]);
    for text in rows {
        let shown = |masked: &str| clean_text(masked).into_owned();
        let found = |shown: &str| !secrets.mask(shown).1.is_empty();
        for hides in HIDES {
            let step = (text.len() / 7).max(1);
            for at in (0..=text.len()).step_by(step) {
                let at = text.floor_char_boundary(at);
                let hidden = format!("x {}{hides}{} y", &text[..at], &text[at..]);
                if !found(&shown(&hidden)) {
                    // A carriage return is a line break: the secret does not come together.
                    continue;
                }
                let (masked, what) = secrets.mask(&hidden);
                assert!(
                    !what.is_empty() && !found(&shown(&masked)),
                    "{hidden:?}: {masked:?}"
                );
                let mut masker = Masker::default();
                let mut out = String::new();
                for cut in hidden.chars() {
                    out += &masker.push(&secrets, cut.encode_utf8(&mut [0; 4]));
                }
                out += &masker.end(&secrets);
                assert!(!found(&shown(&out)), "{hidden:?}: {out:?}");
            }
        }
    }
    // Text without a secret is not changed.
    let colored = "\u{1b}[32mok\u{1b}[0m";
    assert_eq!(secrets.mask(colored).0, colored);
}

#[test]
fn a_secret_cut_anywhere_is_masked() {
    let secrets = Secrets::new(["the-value-of-a-variable".to_owned()]);
    let own = (
        "x the-value-of-a-variable y".to_owned(),
        "x th[secret: configured-key] y".to_owned(),
    );
    let rows = pairs().flat_map(|(shape, start)| examples(shape, start).0);
    for (text, expected) in rows.chain([own]) {
        let (text, expected) = (format!("so: {text} é"), format!("so: {expected} é"));
        for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let mut masker = Masker::default();
            let mut out = masker.push(&secrets, &text[..cut]);
            out += &masker.push(&secrets, &text[cut..]);
            out += &masker.end(&secrets);
            assert_eq!(out, expected, "cut at {cut}");
        }
        let mut masker = Masker::default();
        let mut out: String = text
            .chars()
            .map(|c| masker.push(&secrets, c.encode_utf8(&mut [0; 4])))
            .collect();
        out += &masker.end(&secrets);
        assert_eq!(out, expected);
    }
}

#[test]
fn the_number_of_lines_stays_where_it_counts() {
    let pem = SHAPES.iter().find(|shape| matches!(shape.body, Body::Pem));
    let pem = pem.expect("a row");
    let key = &examples(pem, pem.starts[0]).0[0].0;
    let mut text = format!("a\n{key}\nghp_{}\nz", random(36));
    let lines = text.lines().count();
    let masked = Secrets::default().mask_keeping_lines(&mut text);
    assert_eq!((text.lines().count(), masked.count()), (lines, 2), "{text}");
    assert!(
        text.starts_with(&format!("a\n{}[secret: private-key]\n", pem.starts[0])),
        "{text}"
    );
    assert!(text.ends_with("\nghp_[secret: github-token]\nz"), "{text}");
}

#[test]
fn a_value_that_is_part_of_the_beginning_of_a_shape_may_be_cut_anywhere() {
    let secrets = Secrets::new(["PRIVATE KEY".to_owned()]);
    let text = "a -----BEGIN PRIVATE KEY-b";
    for cut in 0..=text.len() {
        let mut masker = Masker::default();
        let mut out = masker.push(&secrets, &text[..cut]);
        out += &masker.push(&secrets, &text[cut..]);
        out += &masker.end(&secrets);
        // Text emitted before the match was known stays.
        assert!(
            out.starts_with("a -----BEGIN PR") && out.ends_with("-b"),
            "{cut}: {out}"
        );
    }
}

#[test]
fn code_and_hashes_stay() {
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let texts = [
        hash.to_owned(),
        format!("sha256-{}", random(43)),
        format!("commit {}", &hash[..40]),
        format!("f47ac10b-58cc-4372-a567-0e02b2c3d479 {}", random(64)),
        "pip install sk-learn-contrib-something-very-long-with-many-words-0123456789".to_owned(),
        "let token = format!(\"ghp_{}\", rest); Authorization: Bearer $TOKEN".to_owned(),
        "Authorization: Bearer <your token here>".to_owned(),
        "#[test]\nfn npm_install_works_with_many_words_in_its_name() {}".to_owned(),
        format!("data:image/png;base64,{}", random(400)),
    ];
    for text in texts {
        assert_eq!(Secrets::default().mask(&text).0, text);
    }
}

#[test]
fn values_of_variables_are_masked_unless_short() {
    let secrets = Secrets::new(["short".to_owned(), " my own key 1 \n".to_owned()]);
    let (masked, what) = secrets.mask("a short text: my own key 1!");
    assert_eq!(masked, "a short text: my[secret: configured-key]!");
    assert_eq!(
        what.line().as_deref(),
        Some("masked 1 secret (configured key); --allow-secrets sends it")
    );
}

#[test]
fn allowed_secrets_stay() {
    let text = format!("ghp_{}", random(36));
    let secrets = Secrets {
        allow: true,
        ..Secrets::default()
    };
    assert_eq!(secrets.mask(&text).0, text);
    assert_eq!(Masker::default().push(&secrets, &text), text);
}

#[test]
fn the_line_counts() {
    let token = format!("ghp_{}", random(36));
    let key = format!("AKIA{}", upper(16));
    let text = format!("{token} {key} {token}");
    let (_, what) = Secrets::default().mask(&text);
    assert_eq!(
        what.line().as_deref(),
        Some("masked 3 secrets (AWS access key, GitHub token ×2); --allow-secrets sends them")
    );
    assert_eq!(Masked::default().line(), None);
}

proptest! {
    #[test]
    fn pieces_give_the_same_as_the_whole(
        parts in prop::collection::vec(prop_oneof![
            "[a-zA-Z0-9_.:/@ é=-]{0,60}",
            prop::sample::select(pairs().map(|(_, start)| start.to_owned()).collect::<Vec<_>>()),
            prop::sample::select(pairs().flat_map(|(s, start)| examples(s, start).0).map(|e| e.0).collect::<Vec<_>>()),
        ], 0..8),
        size in 1_usize..40,
    ) {
        let text = parts.concat();
        let secrets = Secrets::default();
        let mut masker = Masker::default();
        let chars: Vec<char> = text.chars().collect();
        let mut out = String::new();
        for piece in chars.chunks(size) {
            out += &masker.push(&secrets, &piece.iter().collect::<String>());
        }
        out += &masker.end(&secrets);
        prop_assert_eq!(out, secrets.mask(&text).0);
    }
}

#[test]
fn the_documentation_names_every_shape() {
    let page = include_str!("../../../../docs/record.md");
    let page = page.split("## Secrets").nth(1).expect("a section");
    for (shape, start) in pairs() {
        assert!(page.contains(&format!("`{}`", shape.id)), "{}", shape.id);
        let is_told = match shape.body {
            Body::Run(..) if shape.id != "bearer-token" => page.contains(&format!("`{start}…`")),
            _ => true,
        };
        assert!(is_told || shape.id == "slack-token", "{start}");
    }
}

/// Prints the cost of masking compared with counting the words of the same text.
#[test]
#[ignore = "a measurement: cargo test --release -p kd-core --lib secrets -- --ignored --nocapture"]
#[allow(clippy::disallowed_methods, reason = "a timing measurement")]
fn how_long_masking_takes() {
    let secrets = Secrets::default();
    for word in ["lorem ipsum dolor sit amet, ", "a", "x ", "s p a g "] {
        let text = word.repeat(10_000_000 / word.len());
        let began = std::time::Instant::now();
        let words = std::hint::black_box(&text).split_ascii_whitespace().count();
        let counting = began.elapsed();
        let began = std::time::Instant::now();
        let mut masker = Masker::default();
        let pieces = text.as_bytes().chunks(1 << 14);
        let pieces = pieces.map(|piece| std::str::from_utf8(piece).expect("ASCII"));
        let given: usize = pieces.map(|piece| masker.push(&secrets, piece).len()).sum();
        let masking = began.elapsed();
        assert_eq!(given + masker.end(&secrets).len(), text.len());
        let ratio = masking.as_secs_f64() / counting.as_secs_f64();
        println!("{words} words: {masking:?}, {ratio:.1} times the counting of words");
    }
}
