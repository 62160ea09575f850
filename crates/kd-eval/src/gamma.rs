//! The gamma function, for statistical distributions.

/// Returns the logarithm of the gamma function of a positive number (Lanczos 1964, g = 7).
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const G: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Reflection formula.
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum = G
        .iter()
        .enumerate()
        .fold(0.999_999_999_999_809_9, |s, (i, g)| {
            s + g / (x + i as f64 + 1.0)
        });
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_tables_say() {
        for (x, expected) in [
            (1.0, 0.0),
            (5.0, 24f64.ln()),
            (0.5, std::f64::consts::PI.sqrt().ln()),
        ] {
            assert!((ln_gamma(x) - expected).abs() < 1e-12, "{x}");
        }
    }
}
