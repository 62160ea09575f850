//! The network against textbook arithmetic on tiny models, against stored references on the real one, and against
//! itself under every way to run it.

use super::*;
use crate::tiny::formats::Format;
use crate::tiny::{Built, Random, Tiny, divergence, vocab};

fn model(built: &Built, pool: &Pool, simd: Simd) -> Model {
    Model::load(&Gguf::from_bytes(built.bytes()).unwrap(), pool, simd).unwrap()
}

fn tokens(n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random(seed);
    (0..n).map(|_| random.below(vocab()) as u32).collect()
}

/// Returns the logits after every token, evaluated in segments that end at `cuts`.
fn logits(model: &Model, pool: &Pool, tokens: &[u32], cuts: &[usize]) -> Vec<Vec<f32>> {
    let mut sequence = Sequence::new(model.config.shape, Vec::new());
    let mut scratch = Scratch::default();
    let mut all = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied().chain([tokens.len()]) {
        let rows: Vec<Row> = tokens[from..to]
            .iter()
            .map(|t| Row {
                token: *t,
                sequence: 0,
                logits: true,
            })
            .collect();
        all.extend(model.forward(pool, &mut [&mut sequence], &rows, &mut scratch));
        from = to;
    }
    all
}

fn all_kinds() -> Vec<Tiny> {
    let k = |format| Tiny {
        width: 256,
        heads: 4,
        kv_heads: 1,
        feed_forward: 256,
        formats: vec![format],
        ..Tiny::default()
    };
    vec![
        Tiny::default(),
        Tiny {
            formats: vec![Format::Q4_1, Format::Q4_0],
            tied: false,
            seed: 2,
            ..Tiny::default()
        },
        Tiny {
            formats: vec![Format::Q5_0, Format::F16, Format::BF16],
            kv_heads: 4,
            seed: 3,
            ..Tiny::default()
        },
        Tiny {
            formats: vec![Format::F32, Format::Q5_1],
            kv_heads: 1,
            factors: true,
            seed: 4,
            ..Tiny::default()
        },
        Tiny {
            architecture: "qwen2",
            bias: true,
            formats: vec![Format::Q4_0, Format::Q8_0],
            seed: 5,
            ..Tiny::default()
        },
        Tiny {
            architecture: "qwen2",
            bias: true,
            tied: false,
            seed: 6,
            ..k(Format::Q4K)
        },
        Tiny {
            architecture: "qwen3",
            head_norms: true,
            dim: Some(32),
            formats: vec![Format::Q8_0, Format::Q4_1],
            seed: 9,
            ..Tiny::default()
        },
        Tiny {
            seed: 7,
            ..k(Format::Q5K)
        },
        Tiny {
            seed: 8,
            ..k(Format::Q6K)
        },
    ]
}

#[test]
fn tiny_models_say_what_the_book_says() {
    let pool = Pool::new(2);
    for tiny in all_kinds() {
        let built = tiny.clone().build();
        let model = model(&built, &pool, Simd::detect());
        let tokens = tokens(24, 9);
        let exact = built.logits(&tokens);
        let ours = logits(&model, &pool, &tokens, &[]);
        let mean = exact
            .iter()
            .zip(&ours)
            .map(|(e, o)| divergence(e, o))
            .sum::<f64>()
            / tokens.len() as f64;
        let spread = exact.iter().flatten().fold(0f64, |a, v| a.max(v.abs()));
        assert!(spread > 2.0, "the model says nothing: {spread}");
        // A wrong rotation, norm or head is off by tenths or more; rounding activations to 8 bits is off by
        // thousandths.
        assert!(
            mean < 0.01,
            "{} {:?}: {mean}",
            tiny.architecture,
            tiny.formats
        );
    }
}

#[test]
fn nothing_depends_on_threads_instructions_or_cuts() {
    for tiny in all_kinds() {
        let built = tiny.build();
        let tokens = tokens(41, 10);
        let truth = logits(
            &model(&built, &Pool::new(1), Simd::SCALAR),
            &Pool::new(1),
            &tokens,
            &[],
        );
        for (simd, threads) in Simd::available()
            .into_iter()
            .flat_map(|s| [(s, 1), (s, 2), (s, 3)])
        {
            let pool = Pool::new(threads);
            let model = model(&built, &pool, simd);
            for cuts in [&[][..], &[1, 2, 3], &[7, 8, 40], &[16, 33]] {
                assert!(
                    logits(&model, &pool, &tokens, cuts) == truth,
                    "{simd:?} {threads} {cuts:?}"
                );
            }
        }
    }
}

#[test]
fn together_is_the_same_as_alone() {
    let pool = Pool::new(2);
    let built = Tiny {
        kv_heads: 2,
        formats: vec![Format::Q4_1, Format::Q8_0],
        ..Tiny::default()
    }
    .build();
    let model = model(&built, &pool, Simd::detect());
    let prefix = tokens(37, 11);
    let tails: Vec<Vec<u32>> = (0..9).map(|i| tokens(5 + i, 20 + i as u64)).collect();
    let alone: Vec<_> = tails
        .iter()
        .map(|tail| {
            logits(&model, &pool, &[prefix.clone(), tail.clone()].concat(), &[])[prefix.len()..]
                .to_vec()
        })
        .collect();
    for count in [1, 3, 9] {
        let mut scratch = Scratch::default();
        let mut first = Sequence::new(model.config.shape, Vec::new());
        let rows: Vec<Row> = prefix
            .iter()
            .map(|t| Row {
                token: *t,
                sequence: 0,
                logits: false,
            })
            .collect();
        model.forward(&pool, &mut [&mut first], &rows, &mut scratch);
        // Every member takes over the prefix, two of them a part of it, and reads the rest into its own tail.
        let mut members: Vec<Sequence> = (0..count)
            .map(|i| {
                Sequence::new(
                    model.config.shape,
                    first.share(if i % 4 == 1 {
                        prefix.len() - 3
                    } else {
                        prefix.len()
                    }),
                )
            })
            .collect();
        let todo: Vec<Vec<u32>> = members
            .iter()
            .zip(&tails)
            .map(|(m, tail)| [&prefix[m.len()..], tail].concat())
            .collect();
        let mut got = vec![Vec::new(); count];
        let mut at = vec![0; count];
        let mut random = Random(count as u64);
        while at.iter().zip(&todo).any(|(at, todo)| *at < todo.len()) {
            // Uneven steps: some members several tokens, some none.
            let mut rows = Vec::new();
            let mut owners = Vec::new();
            for i in 0..count {
                let n = random.below(4).min(todo[i].len() - at[i]);
                for token in &todo[i][at[i]..at[i] + n] {
                    rows.push(Row {
                        token: *token,
                        sequence: i,
                        logits: true,
                    });
                    owners.push(i);
                }
                at[i] += n;
            }
            let mut refs: Vec<&mut Sequence> = members.iter_mut().collect();
            for (i, logits) in
                owners
                    .into_iter()
                    .zip(model.forward(&pool, &mut refs, &rows, &mut scratch))
            {
                got[i].push(logits);
            }
        }
        for i in 0..count {
            let skip = got[i].len() - tails[i].len();
            assert!(got[i][skip..] == alone[i], "member {i} of {count}");
        }
    }
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let pool = Pool::new(1);
    let load = |bytes| Model::load(&Gguf::from_bytes(bytes).unwrap(), &pool, Simd::SCALAR).err();
    let built = Tiny::default().build();
    assert!(load(built.bytes()).is_none());
    let other = Tiny {
        architecture: "mamba",
        ..Tiny::default()
    }
    .build();
    let error = load(other.bytes()).unwrap();
    assert!(
        matches!(&error, Error::Unsupported { what } if what.contains("mamba")),
        "{error}"
    );
    let experts = built.writer().u32("llama.expert_count", 8).finish();
    assert!(matches!(load(experts), Some(Error::Unsupported { .. })));
    let yarn = built
        .writer()
        .str("llama.rope.scaling.type", "yarn")
        .finish();
    assert!(matches!(load(yarn), Some(Error::Unsupported { .. })));
    // Sizes that contradict the tensors.
    for wrong in [
        Tiny {
            layers: 3,
            ..Tiny::default()
        },
        Tiny {
            feed_forward: 64,
            ..Tiny::default()
        },
        Tiny {
            heads: 2,
            ..Tiny::default()
        },
    ] {
        let mut lying = Tiny::default().build();
        lying.tiny = wrong;
        assert!(matches!(
            load(lying.bytes()),
            Some(Error::Gguf { .. } | Error::Unsupported { .. })
        ));
    }
}

#[test]
fn the_real_model_agrees_with_stored_references() {
    let Some(path) = std::env::var_os("KD_MODEL") else {
        println!("not run: set KD_MODEL to SmolLM2-135M-Instruct.Q4_1.gguf");
        return;
    };
    let reference: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/data/reference.json")).unwrap();
    let numbers = |v: &serde_json::Value| -> Vec<f64> {
        v.as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_f64().unwrap())
            .collect()
    };
    let ids =
        |v: &serde_json::Value| -> Vec<u32> { numbers(v).into_iter().map(|v| v as u32).collect() };
    let pool = Pool::new(2);
    let model = Model::load(&Gguf::open(path).unwrap(), &pool, Simd::detect()).unwrap();
    let prompt = ids(&reference["prompt"]);
    let greedy = reference["greedy"].as_array().unwrap();
    let answer: Vec<u32> = greedy
        .iter()
        .map(|g| g["id"].as_u64().unwrap() as u32)
        .collect();
    let all = logits(
        &model,
        &pool,
        &[prompt.clone(), answer.clone()].concat(),
        &[prompt.len()],
    );
    let positions = reference["positions"].as_array().unwrap();
    let first = prompt.len() - positions.len();
    let mut sum = 0.0;
    for (position, logits) in positions.iter().zip(&all[first..]) {
        let ours = crate::tiny::softmax(&logits.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        let (mut rest_p, mut rest_q) = (1.0, 1.0);
        for (id, log_p) in ids(&position["ids"])
            .iter()
            .zip(numbers(&position["log_probs"]))
        {
            let (p, q) = (log_p.exp(), ours[*id as usize]);
            sum += p * (log_p - q.ln());
            (rest_p, rest_q) = (rest_p - p, rest_q - q);
        }
        // All tokens beyond the stored ones count as one.
        sum += f64::max(rest_p, 1e-9) * (f64::max(rest_p, 1e-9) / f64::max(rest_q, 1e-9)).ln();
    }
    let mean = sum / positions.len() as f64;
    let (mut differ, mut worst) = (0, 0f64);
    for (i, (want, logits)) in greedy.iter().zip(&all[prompt.len() - 1..]).enumerate() {
        let best = (0..logits.len())
            .max_by(|a, b| logits[*a].total_cmp(&logits[*b]))
            .unwrap();
        if best as u64 != want["id"].as_u64().unwrap() {
            differ += 1;
            worst = worst.max(want["distance"].as_f64().unwrap());
            println!("token {i}: {best} instead of {want}");
        }
    }
    println!(
        "mean divergence {mean:.5} nats over {} positions, {differ} of {} greedy tokens differ",
        positions.len(),
        greedy.len()
    );
    assert!(mean < 0.01, "{mean}");
    assert!(worst < 0.5, "{worst}");
    assert!(differ * 10 <= greedy.len(), "{differ}");
}
