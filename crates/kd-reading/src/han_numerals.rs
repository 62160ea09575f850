//! Numbers in Chinese characters: `三百五十`, `一千零二`, `三点五`.

use super::language::is_han;
use super::number::Number;

/// Words with number characters that are not numbers.
const IDIOMS: &[&str] = &[
    "十分",
    "万一",
    "千万",
    "四舍五入",
    "三思",
    "两者",
    "两难",
    "百分百",
    "一百分",
    "星期一",
    "星期二",
    "星期三",
    "星期四",
    "星期五",
    "星期六",
    "周一",
    "周二",
    "周三",
    "周四",
    "周五",
    "周六",
    "礼拜一",
    "礼拜二",
    "礼拜三",
    "礼拜四",
    "礼拜五",
    "礼拜六",
    "一些",
    "一定",
    "一样",
    "一般",
    "一下",
    "一起",
    "一直",
    "一旦",
    "统一",
    "唯一",
    "七上八下",
    "乱七八糟",
];

/// Returns the numbers of a text; a lone "one" is skipped. `None` if one of them cannot be read.
pub(super) fn of(text: &str) -> Option<Vec<Number>> {
    let digit = |c: char| "零一二三四五六七八九".contains(c) || "两十百千万亿".contains(c);
    if !text.contains(digit) {
        return Some(Vec::new());
    }
    // `十分钟` counts minutes.
    let mut masked = text.to_owned();
    for idiom in IDIOMS {
        for (at, _) in text.match_indices(idiom) {
            let behind = &text[at + idiom.len()..];
            if *idiom == "十分" && behind.starts_with(['钟', '之']) {
                continue;
            }
            masked.replace_range(at..at + idiom.len(), &"x".repeat(idiom.len()));
        }
    }
    let mut found = Vec::new();
    let mut run: Vec<char> = Vec::new();
    let mut start = 0;
    for (at, c) in masked.char_indices().chain([(masked.len(), ' ')]) {
        if digit(c) {
            if run.is_empty() {
                start = at;
            }
            run.push(c);
            continue;
        }
        let (before, run) = (masked.get(..start)?, std::mem::take(&mut run));
        let behind = masked.get(at..)?;
        // The third one is not a three.
        let scale = matches!(run.as_slice(), ['百' | '千' | '万' | '亿']);
        if run.is_empty() || run == ['一'] || scale || before.ends_with('第') {
            continue;
        }
        let mut key = value(&run)?.to_string();
        let mut end = at;
        if let Some(decimals) = behind.strip_prefix('点') {
            let digits: String = decimals
                .chars()
                .map_while(|c| "零一二三四五六七八九".chars().position(|d| d == c))
                .map(|n| n.to_string())
                .collect();
            if !digits.is_empty() {
                end += '点'.len_utf8() * (1 + digits.len());
                key = format!("{key}.{digits}");
            }
        }
        // `三个半`
        let mut signs = behind.chars();
        let measure = signs
            .next()
            .filter(|c| is_han(*c) && !matches!(c, '的' | '是' | '有' | '点'));
        if let (Some(measure), Some('半')) = (measure, signs.next()) {
            key = format!("{key}.5");
            end += measure.len_utf8() + '半'.len_utf8();
        }
        // The decimals of the number before.
        if before.ends_with('点') && found.last().is_some_and(|n: &Number| n.end > start) {
            continue;
        }
        let sign = if before.ends_with('负') { "-" } else { "" };
        found.push(Number {
            key: format!("{sign}{key}"),
            start,
            end,
        });
    }
    Some(found)
}

fn value(run: &[char]) -> Option<u64> {
    let digit = |c: char| {
        let place = "零一二三四五六七八九".chars().position(|d| d == c);
        place.map(|n| n as u64).or((c == '两').then_some(2))
    };
    match run {
        ['十'] => Some(10),
        [one] => digit(*one),
        ['十', unit] => digit(*unit).map(|u| 10 + u),
        run => han_number(run),
    }
}

/// Parses a number in Chinese characters: `三百五十`, `一千零二十`, `三万`. The last digit of `三百五` counts tens.
fn han_number(run: &[char]) -> Option<u64> {
    let (mut total, mut section) = (0u64, 0u64);
    let (mut digit, mut last, mut after_zero) = (None, 1u64, false);
    for c in run {
        let scale = match c {
            '十' => 10,
            '百' => 100,
            '千' => 1_000,
            '万' => 10_000,
            '零' => {
                after_zero = true;
                continue;
            }
            c => {
                let value = match c {
                    '两' => 2,
                    c => "一二三四五六七八九".chars().position(|d| d == *c)? as u64 + 1,
                };
                // Two adjacent digits are a year, or two numbers.
                if digit.replace(value).is_some() {
                    return None;
                }
                continue;
            }
        };
        match (scale, digit.take()) {
            (10_000, unit) => {
                total = (section + unit.unwrap_or(0))
                    .checked_mul(scale)
                    .filter(|n| *n > 0)?;
                section = 0;
            }
            (10, None) => section += 10,
            (_, None) => return None,
            (_, Some(unit)) => section += unit * scale,
        }
        (last, after_zero) = (scale, false);
    }
    let rest = digit.map(|unit| match last >= 100 && !after_zero {
        true => unit * last / 10,
        false => unit,
    });
    Some(total + section + rest.unwrap_or(0))
}
