//! Questions that are calculations.

use super::kind_words::any_in;
use super::language::Language;
use super::number;

/// Matches `What is 17*23`, `3x + 5 = 20`, `17 × 23 =`.
pub(super) fn is_arithmetic(lower: &str) -> bool {
    if lower.chars().count() >= 200 || !lower.chars().any(|c| c.is_ascii_digit()) {
        return false;
    }
    let chars: Vec<char> = lower.chars().filter(|c| !c.is_whitespace()).collect();
    let sign = |c: char| {
        matches!(
            c,
            '+' | '*' | '×' | '·' | '÷' | '/' | '^' | '−' | '=' | '-' | ':'
        )
    };
    let operand = |c: char| c.is_ascii_digit() || matches!(c, '(' | '√' | '?');
    let hit = chars.windows(3).any(|w| {
        (w[0].is_ascii_digit() || matches!(w[0], ')' | 'x'))
            && sign(w[1])
            && (operand(w[2]) || w[2] == 'x')
            && w[1] != ':'
            || w[0].is_ascii_digit() && w[1] == 'x' && w[2].is_ascii_digit()
    });
    let ends = lower.trim_end().ends_with('=');
    let date = chars.windows(5).any(|w| {
        w[0].is_ascii_digit() && w[1] == '-' && w[2].is_ascii_digit() && w[3] == '-'
            || w[1] == '/' && w[3] == '/'
            || w[0] == '/' && w[2] == '/'
    });
    if any_in(
        "% tip on |% trinkgeld auf |% off |quarters of |thirds of |fifths of |half of |viertel von |drittel von |hälfte von |tiers de |quarts de |moitié de |tercios de |cuartos de |mitad de |% of |% von |% de |percent of |prozent von |por ciento de |pour cent de |√",
        lower,
    ) {
        return true;
    }
    let operations = "plus|minus|times|divided by|to the power|square root|factorial|squared|cubed| mal |geteilt durch|wurzel| hoch | fois |divisé par| moins |racine| más | menos |dividido| por |raíz";
    let numbers = number::numbers(lower, Language::of(lower)).len();
    hit && !date
        || ends
        || numbers >= 2 && any_in(operations, lower) && lower.split(' ').count() < 14
        || numbers >= 1
            && any_in(
                "square root|wurzel|racine carrée|raíz cuadrada|factorial| squared| cubed|log2|log10|log(|ln(|sin(|cos(|tan(|sqrt(|gcd(|lcm(|ggt(|pgcd(|mcd(",
                lower,
            )
}
