//! Properties of the sampler.

use super::*;

fn logits(n: usize, seed: u64) -> Vec<f32> {
    let mut random = crate::tiny::Random(seed);
    (0..n).map(|_| random.signed() * 6.0).collect()
}

fn draw(settings: &Sampling, logits: &[f32], times: usize) -> Vec<u32> {
    let mut sampler = Sampler::new(settings.clone(), Simd::detect());
    (0..times)
        .map(|_| sampler.sample(&mut logits.to_vec(), |_| true).unwrap())
        .collect()
}

fn free() -> Sampling {
    Sampling {
        temperature: 1.0,
        top_p: 1.0,
        repeat_penalty: 1.0,
        ..Sampling::default()
    }
}

#[test]
fn the_same_seed_gives_the_same_tokens_with_any_instructions() {
    let logits = logits(5000, 1);
    for settings in [
        free(),
        Sampling::default(),
        Sampling {
            top_k: 40,
            min_p: 0.02,
            frequency_penalty: 0.3,
            ..free()
        },
    ] {
        let truth = draw(&settings, &logits, 50);
        for simd in Simd::available() {
            let mut sampler = Sampler::new(settings.clone(), simd);
            let tokens: Vec<u32> = (0..50)
                .map(|_| sampler.sample(&mut logits.clone(), |_| true).unwrap())
                .collect();
            assert_eq!(tokens, truth);
        }
        let other = Sampling {
            seed: 99,
            ..settings
        };
        assert_ne!(draw(&other, &logits, 50), truth);
    }
}

#[test]
fn cold_takes_the_best_and_the_first_of_equals() {
    assert_eq!(
        draw(&Sampling::greedy(), &[1.0, 5.0, 5.0, -3.0], 3),
        [1, 1, 1]
    );
    // So low that the weight of every other token vanishes.
    let cold = Sampling {
        temperature: 1e-6,
        ..free()
    };
    assert_eq!(draw(&cold, &[1.0, 5.0, 4.0, -3.0], 3), [1, 1, 1]);
}

#[test]
fn frequencies_follow_the_probabilities() {
    let logits = [0.0f32, 1.0, 2.0, -1.0];
    let n = 20_000;
    let drawn = draw(&free(), &logits, n);
    let exact = crate::tiny::softmax(&logits.map(f64::from));
    for (token, p) in exact.iter().enumerate() {
        let share = drawn.iter().filter(|t| **t as usize == token).count() as f64 / n as f64;
        // Five standard deviations.
        assert!(
            (share - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(),
            "{token}: {share} {p}"
        );
    }
}

#[test]
fn the_filters_keep_exactly_what_they_say() {
    let logits = logits(800, 2);
    let p = crate::tiny::softmax(&logits.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
    let mut order: Vec<u32> = (0..800).collect();
    order.sort_by(|a, b| p[*b as usize].total_cmp(&p[*a as usize]));
    let kept = |settings: &Sampling| {
        let mut seen: Vec<u32> = draw(settings, &logits, 30_000);
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    let sorted = |n: usize| {
        let mut first = order[..n].to_vec();
        first.sort_unstable();
        first
    };
    assert_eq!(kept(&Sampling { top_k: 5, ..free() }), sorted(5));
    let min_p = Sampling {
        min_p: 0.5,
        ..free()
    };
    let n = p
        .iter()
        .filter(|v| **v >= 0.5 * p[order[0] as usize])
        .count();
    assert_eq!(kept(&min_p), sorted(n));
    let mut sum = 0.0;
    let n = order
        .iter()
        .position(|t| {
            sum += p[*t as usize];
            sum >= 0.3
        })
        .unwrap()
        + 1;
    assert_eq!(
        kept(&Sampling {
            top_p: 0.3,
            ..free()
        }),
        sorted(n)
    );
    assert_eq!(
        kept(&Sampling {
            top_p: 0.0,
            ..free()
        }),
        sorted(1)
    );
}

#[test]
fn a_flat_distribution_needs_the_whole_vocabulary() {
    // No token is below a thousandth of another, so the fast path would do; with the tail below, it would not.
    let mut logits = vec![0.0f32; 3000];
    logits[17] = 8.0;
    let drawn = draw(
        &Sampling {
            top_p: 0.9,
            ..free()
        },
        &logits,
        3000,
    );
    assert!(drawn.iter().any(|t| *t != 17));
    // 2981 of 5980 for the best one, the rest equal: the filter must extend far beyond it.
    assert!(drawn.iter().any(|t| *t > 2000));
}

#[test]
fn what_is_not_allowed_is_never_drawn() {
    let logits = logits(300, 3);
    for settings in [
        Sampling::greedy(),
        free(),
        Sampling {
            top_p: 0.5,
            top_k: 3,
            min_p: 0.1,
            ..free()
        },
    ] {
        let mut sampler = Sampler::new(settings, Simd::detect());
        for _ in 0..500 {
            assert_eq!(
                sampler.sample(&mut logits.clone(), |t| t % 7 == 3).unwrap() % 7,
                3
            );
        }
        assert!(sampler.sample(&mut logits.clone(), |_| false).is_err());
    }
}

#[test]
fn penalties_turn_from_what_was_said() {
    let settings = Sampling {
        repeat_penalty: 10.0,
        ..Sampling::greedy()
    };
    assert_eq!(draw(&settings, &[3.0, 2.0, 1.0, -0.5], 3), [0, 1, 2]);
    let settings = Sampling {
        presence_penalty: 1.5,
        ..Sampling::greedy()
    };
    assert_eq!(draw(&settings, &[3.0, 2.0, 1.0], 4), [0, 1, 0, 0]);
    let settings = Sampling {
        frequency_penalty: 0.75,
        ..Sampling::greedy()
    };
    assert_eq!(draw(&settings, &[3.0, 2.0, 1.0], 4), [0, 0, 1, 0]);
    // Outside the window a token counts as unused.
    let settings = Sampling {
        repeat_penalty: 10.0,
        repeat_window: 1,
        ..Sampling::greedy()
    };
    assert_eq!(draw(&settings, &[3.0, 2.0, 1.0], 4), [0, 1, 0, 1]);
    // A negative logit is lowered, not raised.
    let settings = Sampling {
        repeat_penalty: 2.0,
        ..Sampling::greedy()
    };
    assert_eq!(draw(&settings, &[-1.0, -1.5], 2), [0, 1]);
}

#[test]
fn numbers_that_are_none_are_an_error_or_passed_over() {
    let mut sampler = Sampler::new(free(), Simd::detect());
    assert!(sampler.sample(&mut [f32::NAN; 8], |_| true).is_err());
    for settings in [free(), Sampling::greedy()] {
        let mut sampler = Sampler::new(settings, Simd::detect());
        assert_eq!(
            sampler
                .sample(&mut [f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY], |_| true)
                .unwrap(),
            1
        );
    }
}
