//! Composes replies from the templates in `tests/data/composed`.

use std::collections::BTreeMap;

const LANGUAGES: [&str; 5] = [
    include_str!("../data/composed/en.txt"),
    include_str!("../data/composed/de.txt"),
    include_str!("../data/composed/fr.txt"),
    include_str!("../data/composed/es.txt"),
    include_str!("../data/composed/zh.txt"),
];

/// Number of replies of each set.
pub(super) const REPLIES: usize = 5_000;

/// Sets of three options.
const OPTIONS: [[&str; 3]; 8] = [
    ["SQLite", "PostgreSQL", "MySQL"],
    ["Rust", "Go", "Python"],
    ["Kafka", "RabbitMQ", "NATS"],
    ["Vue", "React", "Svelte"],
    ["Helsinki", "Oslo", "Lisbon"],
    ["Terraform", "Pulumi", "Ansible"],
    ["Nginx", "Caddy", "Traefik"],
    ["Fedora", "Debian", "Arch Linux"],
];
const NAMES: [&str; 6] = [
    "Canberra",
    "tungsten",
    "Ada Lovelace",
    "photosynthesis",
    "Mount Kenya",
    "idempotence",
];

/// A linear congruential generator: the same replies on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// A number that is not among others.
    fn number(&mut self, others: &[usize]) -> usize {
        loop {
            let digits = [9, 90, 900, 9_000][self.below(4)];
            let number = 2 + self.below(digits);
            if !others.contains(&number) {
                return number;
            }
        }
    }
}

/// Templates by `kind role half`.
type Templates = BTreeMap<&'static str, Vec<&'static str>>;

/// Parses a file of templates: `== kind role half`, then one template a line. A line that begins with `#` and follows
/// a heading `###` belongs to it.
fn templates(text: &'static str) -> Templates {
    let mut all = Templates::new();
    let sections = text.split("== ").filter(|s| !s.is_empty());
    for section in sections {
        let (name, lines) = section.split_once('\n').unwrap();
        let mut at = 0;
        let lines = lines.trim_end();
        let out = all.entry(name).or_default();
        while at < lines.len() {
            let rest = &lines[at..];
            let mut end = rest.find('\n').unwrap_or(rest.len());
            if rest.starts_with("### ") {
                end += 1 + rest[end + 1..].find('\n').unwrap_or(rest[end + 1..].len());
            }
            out.push(&rest[..end]);
            at += end + 1;
        }
    }
    all
}

/// A reply, and what a person would read from it.
pub(super) struct Case {
    /// Kind, in the words of the corpora.
    pub(super) kind: String,
    /// What the model wrote.
    pub(super) reply: String,
    /// The answer, if there is one.
    pub(super) want: Option<String>,
}

/// The frames around the sentences of a reply.
const FRAMES: usize = 10;

/// Returns whether a template is a separate line rather than a sentence.
fn is_line(template: &str) -> bool {
    !template.ends_with(['.', '。', '!', '！', '）', ')'])
        || template.starts_with(['*', '#', '=', '\\', '$'])
}

fn joined(parts: &[String], lines: bool, han: bool) -> String {
    parts.join(match (lines, han) {
        (true, _) => "\n\n",
        (false, true) => "",
        (false, false) => " ",
    })
}

/// Composes a reply of a kind.
fn compose(dice: &mut Dice, all: &Templates, half: &str, kind: &str, han: bool) -> Case {
    let source = if kind == "label" { "choice" } else { kind };
    let of = |role: &str| {
        all.get(format!("{source} {role} {half}").as_str())
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let options = OPTIONS[dice.below(OPTIONS.len())];
    let turn = dice.below(3);
    let letters = ["A", "B", "C"];
    let name = |at: usize| match kind {
        "label" => letters[(turn + at) % 3],
        _ => options[(turn + at) % 3],
    };
    let mut numbers = Vec::new();
    for _ in 0..4 {
        numbers.push(dice.number(&numbers));
    }
    let text = dice.of(&NAMES);
    let fill = |template: &str| {
        template
            .trim_end_matches('!')
            .replace("{x}", name(0))
            .replace("{y}", name(1))
            .replace("{z}", name(2))
            .replace("{t}", text)
            .replace("{n}", &numbers[0].to_string())
            .replace("{m}", &numbers[1].to_string())
            .replace("{a}", &numbers[2].to_string())
            .replace("{b}", &numbers[3].to_string())
    };
    let kind_words = match kind {
        "choice" => format!("choice:{}", options.join("|")),
        _ => kind.to_owned(),
    };
    let mut before: Vec<String> = Vec::new();
    for _ in 0..dice.below(3) {
        if let Some(line) = pick(dice, of("before")).map(&fill)
            && !before.contains(&line)
        {
            before.push(line);
        }
    }
    if let Some(open) = pick(dice, of("null")).filter(|_| dice.below(5) == 0) {
        before.truncate(1);
        before.push(fill(open));
        let lines = dice.below(2) == 0;
        let reply = joined(&before, lines, han);
        return Case {
            kind: kind_words,
            reply,
            want: None,
        };
    }
    let commit = pick(dice, of("commit")).unwrap();
    let after: Vec<String> = pick(dice, of("after"))
        .filter(|_| dice.below(3) == 0)
        .map(&fill)
        .into_iter()
        .collect();
    let want = match kind {
        "number" => numbers[0].to_string(),
        "text" => text.to_owned(),
        "yes-no" if commit.ends_with('!') => "no".to_owned(),
        "yes-no" => "yes".to_owned(),
        _ => name(0).to_owned(),
    };
    let said = fill(commit);
    let reason = joined(&before, false, han);
    let mut frame = dice.below(FRAMES);
    if kind == "text" && frame >= 5 {
        frame = 0;
    }
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let value = match kind {
        "number" => want.clone(),
        _ => quoted(&want),
    };
    let lines = is_line(commit) || frame == 1;
    let around = |parts: Vec<String>| {
        let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        joined(&parts, lines, han)
    };
    let plain = |head: String| around([vec![head], vec![said.clone()], after.clone()].concat());
    let reply = match frame {
        2 => {
            let bullets: Vec<String> = before.iter().map(|b| format!("- {b}")).collect();
            let parts = [vec![bullets.join("\n")], vec![plain(String::new())]].concat();
            parts.join("\n\n").trim_start().to_owned()
        }
        3 => format!("<think>\n{reason}\n</think>\n\n{}", plain(String::new())),
        4 => format!("## Analysis\n\n{reason}\n\n{}", plain(String::new())),
        5 => format!("{{\"reason\": {}, \"answer\": {value}}}", quoted(&reason)),
        6 => format!(
            "{}\n\n```json\n{{\n  \"answer\": {value},\n  \"confidence\": 0.8,\n}}\n```",
            reason
        ),
        7 => format!(
            "{{\"answer\": {value}, \"reason\": {}",
            quoted(&reason).trim_end_matches('"')
        ),
        _ => plain(reason),
    };
    Case {
        kind: kind_words,
        reply,
        want: Some(want),
    }
}

fn pick<'a>(dice: &mut Dice, all: &[&'a str]) -> Option<&'a str> {
    (!all.is_empty()).then(|| all[dice.below(all.len())])
}

/// Composes the replies of a set.
pub(super) fn cases(half: &str) -> Vec<Case> {
    let all: Vec<Templates> = LANGUAGES.into_iter().map(templates).collect();
    let mut dice = Dice(2026);
    const KINDS: [&str; 10] = [
        "choice", "choice", "choice", "label", "yes-no", "yes-no", "number", "number", "number",
        "text",
    ];
    (0..REPLIES)
        .map(|at| {
            let language = at % LANGUAGES.len();
            let kind = KINDS[dice.below(KINDS.len())];
            compose(&mut dice, &all[language], half, kind, language == 4)
        })
        .collect()
}
