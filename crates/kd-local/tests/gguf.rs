//! The GGUF reader: what it reads, what it refuses and with which message, and that no input makes it panic.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod writer;

use kd_local::Error;
use kd_local::gguf::{Array, GgmlType, Gguf, Value};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use writer::Writer;

/// A small file with every type of metadata and three tensors.
fn sample() -> Vec<u8> {
    let nested = [
        9u32.to_le_bytes().as_slice(), // an array of arrays,
        &2u64.to_le_bytes(),           // two of them:
        &4u32.to_le_bytes(),           // u32s,
        &1u64.to_le_bytes(),
        &7u32.to_le_bytes(),
        &8u32.to_le_bytes(), // and texts
        &1u64.to_le_bytes(),
        &writer::text("x"),
    ]
    .concat();
    Writer::default()
        .str("general.architecture", "llama")
        .raw("u8", 0, &[250])
        .raw("i8", 1, &[0xff])
        .raw("u16", 2, &60_000u16.to_le_bytes())
        .raw("i16", 3, &(-2i16).to_le_bytes())
        .u32("llama.block_count", 30)
        .raw("i32", 5, &(-3i32).to_le_bytes())
        .raw("f32", 6, &1.5f32.to_le_bytes())
        .bool("yes", true)
        .raw("u64", 10, &u64::MAX.to_le_bytes())
        .raw("i64", 11, &(-4i64).to_le_bytes())
        .raw("f64", 12, &2.5f64.to_le_bytes())
        .strings("tokens", &["a", "Ġb", "你"])
        .i32s("kinds", &[1, 3, -1])
        .f32s("scores", &[0.5, -1.0])
        .raw("nested", 9, &nested)
        .tensor(
            "norm",
            &[4],
            0,
            [1f32, 2., 3., 4.]
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect(),
        )
        .tensor("wide", &[64, 3], 3, (0..120).collect())
        .tensor("half", &[2, 2, 2], 1, vec![9; 16])
        .finish()
}

fn message(bytes: Vec<u8>) -> String {
    Gguf::from_bytes(bytes)
        .expect_err("this file must be refused")
        .to_string()
}

#[test]
fn reads_every_type_of_metadata() {
    let g = Gguf::from_bytes(sample()).unwrap();
    assert_eq!(g.version(), 3);
    assert_eq!(
        g.meta("general.architecture").and_then(Value::as_str),
        Some("llama")
    );
    assert_eq!(
        g.meta("llama.block_count").and_then(Value::as_u64),
        Some(30)
    );
    assert_eq!(g.meta("u8").and_then(Value::as_u64), Some(250));
    assert_eq!(g.meta("u16").and_then(Value::as_u64), Some(60_000));
    assert_eq!(g.meta("u64").and_then(Value::as_u64), Some(u64::MAX));
    assert_eq!(g.meta("i8"), Some(&Value::I8(-1)));
    assert_eq!(g.meta("i16"), Some(&Value::I16(-2)));
    assert_eq!(g.meta("i32"), Some(&Value::I32(-3)));
    assert_eq!(g.meta("i64"), Some(&Value::I64(-4)));
    assert_eq!(g.meta("i64").and_then(Value::as_u64), None, "negative");
    assert_eq!(g.meta("f32").and_then(Value::as_f32), Some(1.5));
    assert_eq!(g.meta("f64").and_then(Value::as_f32), Some(2.5));
    assert_eq!(g.meta("yes").and_then(Value::as_bool), Some(true));
    assert_eq!(g.meta("nothing"), None);
    assert_eq!(g.keys().count(), 16);

    let tokens = g
        .meta("tokens")
        .and_then(Value::as_array)
        .and_then(Array::as_strings)
        .unwrap();
    assert_eq!(
        tokens.iter().map(|t| &**t).collect::<Vec<_>>(),
        ["a", "Ġb", "你"]
    );
    assert_eq!(
        g.meta("kinds")
            .and_then(Value::as_array)
            .and_then(Array::as_i32s),
        Some([1, 3, -1].as_slice())
    );
    assert_eq!(
        g.meta("scores")
            .and_then(Value::as_array)
            .and_then(Array::as_f32s),
        Some([0.5, -1.0].as_slice())
    );
    let Some(Value::Array(Array::Array(nested))) = g.meta("nested") else {
        panic!("nested arrays")
    };
    assert_eq!(nested[0].get(0), Some(Value::U32(7)));
    assert_eq!(nested[1].get(0), Some(Value::String("x".into())));
    assert_eq!((nested[1].len(), nested[1].get(1)), (1, None));
}

#[test]
fn finds_tensors() {
    let g = Gguf::from_bytes(sample()).unwrap();
    let norm = g.tensor("norm").unwrap();
    assert_eq!(
        (norm.kind, norm.row_len(), norm.rows(), norm.bytes.len()),
        (GgmlType::F32, 4, 1, 16)
    );
    assert_eq!(norm.bytes[4..8], 2f32.to_le_bytes());
    let wide = g.tensor("wide").unwrap();
    assert_eq!(
        (wide.kind, wide.row_len(), wide.rows()),
        (GgmlType::Q4_1, 64, 3)
    );
    assert_eq!(wide.bytes, (0..120).collect::<Vec<u8>>());
    let half = g.tensor("half").unwrap();
    assert_eq!((half.rows(), half.bytes), (4, [9; 16].as_slice()));
    assert_eq!(
        g.tensors().map(|t| t.name).collect::<Vec<_>>(),
        ["norm", "wide", "half"]
    );
    assert!(g.has_tensor("half") && !g.has_tensor("other"));
    assert!(
        g.tensor("other")
            .unwrap_err()
            .to_string()
            .contains("no tensor named `other`")
    );
}

#[test]
fn a_mapped_file_reads_the_same_and_survives_release() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.gguf");
    std::fs::write(&path, sample()).unwrap();
    let g = Gguf::open(&path).unwrap();
    let before = g.tensor("wide").unwrap().bytes.to_vec();
    g.release();
    assert_eq!(g.tensor("wide").unwrap().bytes, before);

    std::fs::write(dir.path().join("empty"), "").unwrap();
    assert!(
        Gguf::open(dir.path().join("empty"))
            .unwrap_err()
            .to_string()
            .contains("offset 0")
    );
    let missing = Gguf::open(dir.path().join("missing")).unwrap_err();
    assert!(
        matches!(missing, Error::Io { .. }) && missing.to_string().contains("missing"),
        "{missing}"
    );
}

#[test]
fn refuses_other_files_and_says_what_it_expected_and_where() {
    assert!(
        message(b"PK\x03\x04 not a model".to_vec())
            .contains("expected the letters GGUF at offset 0, found `PK")
    );
    assert!(message(b"GG".to_vec()).contains("(4 bytes) at offset 0, but the file ends at 2"));

    let with_version = |v: [u8; 4]| [b"GGUF".as_slice(), &v, &[0; 16]].concat();
    for (version, said) in [
        ([1, 0, 0, 0], "version 1"),
        ([0, 0, 0, 3], "big-endian"),
        ([9, 0, 0, 0], "version 9"),
    ] {
        let error = Gguf::from_bytes(with_version(version)).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }

    let twice = Writer::default().u32("same", 1).u32("same", 2).finish();
    assert!(message(twice).contains("`same` is listed twice"));
    let tensors = Writer::default()
        .tensor("t", &[1], 24, vec![0])
        .tensor("t", &[1], 24, vec![0])
        .finish();
    assert!(message(tensors).contains("`t` is listed twice"));
    assert!(
        message(Writer::default().raw("k", 13, &[]).finish()).contains("type from 0 to 12 for `k`")
    );
    assert!(
        message(Writer::default().u32("general.alignment", 3).finish()).contains("multiple of 8")
    );
    assert!(
        message(Writer::default().u32("general.alignment", 0).finish()).contains("multiple of 8")
    );
    assert!(
        message(Writer::default().raw("split.count", 2, &[2, 0]).finish())
            .contains("split into 2 files")
    );
    assert!(
        message(Writer::default().tensor("t", &[1], 36, vec![0]).finish())
            .contains("tensor type 36")
    );
    assert!(
        message(Writer::default().tensor("t", &[0], 0, vec![]).finish()).contains("positive size")
    );
    assert!(
        message(Writer::default().tensor("t", &[], 0, vec![]).finish())
            .contains("1 to 4 dimensions")
    );
    assert!(
        message(
            Writer::default()
                .tensor("t", &[1; 5], 0, vec![0; 4])
                .finish()
        )
        .contains("1 to 4 dimensions")
    );
    assert!(
        message(
            Writer::default()
                .tensor("t", &[33], 8, vec![0; 34])
                .finish()
        )
        .contains("multiples of 32")
    );
    let short = message(
        Writer::default()
            .tensor("t", &[64], 8, vec![0; 67])
            .finish(),
    );
    assert!(
        short.contains("`t`") && short.contains("needs 68 bytes") && short.contains("cut short"),
        "{short}"
    );
}

#[test]
fn sizes_that_overflow_are_refused() {
    let huge = 1u64 << 62;
    assert!(
        message(
            Writer::default()
                .tensor("t", &[huge, 8], 0, vec![])
                .finish()
        )
        .contains("impossible sizes")
    );
    assert!(
        message(Writer::default().tensor("t", &[huge], 0, vec![]).finish())
            .contains("impossible sizes")
    );
    assert!(
        message(Writer::default().tensor("t", &[huge], 24, vec![]).finish()).contains("cut short")
    );

    // Counts that no file could hold: nothing may be reserved for them.
    let claims = |kind: u32| {
        let value = [kind.to_le_bytes().as_slice(), &u64::MAX.to_le_bytes()].concat();
        message(Writer::default().raw("k", 9, &value).finish())
    };
    for kind in 0..=12 {
        let said = claims(kind);
        assert!(
            said.contains("an array's length at offset 41, found 18446744073709551615"),
            "{said}"
        );
    }
    let mut counts = sample();
    counts[8..16].fill(0xff);
    assert!(message(counts).contains("the number of tensors at offset 8"));
    let mut counts = sample();
    counts[16..24].fill(0xff);
    assert!(message(counts).contains("the number of metadata pairs at offset 16"));
}

#[test]
fn deep_nesting_is_refused_before_the_stack_ends() {
    let mut value = Vec::new();
    for _ in 0..100_000 {
        value.extend(9u32.to_le_bytes());
        value.extend(1u64.to_le_bytes());
    }
    assert!(
        message(Writer::default().raw("deep", 9, &value).finish())
            .contains("nested more than 4 deep")
    );
}

#[test]
fn a_byte_that_is_not_utf8_spoils_a_name_but_not_a_description() {
    let value = [3u64.to_le_bytes().as_slice(), b"a\xffb"].concat();
    let g = Gguf::from_bytes(
        Writer::default()
            .raw("general.description", 8, &value)
            .finish(),
    )
    .unwrap();
    assert_eq!(
        g.meta("general.description").and_then(Value::as_str),
        Some("a\u{fffd}b")
    );

    let mut bytes = Writer::default().u32("key", 1).finish();
    bytes[32] = 0xff;
    assert!(message(bytes).contains("a metadata key in UTF-8 at offset 24"));
}

#[test]
fn every_truncation_is_an_error() {
    let whole = sample();
    for n in 0..whole.len() {
        assert!(
            Gguf::from_bytes(whole[..n].to_vec()).is_err(),
            "cut at {n} of {}",
            whole.len()
        );
    }
}

/// Reads everything readable, so that slices are really created.
fn touch(bytes: Vec<u8>) -> bool {
    match Gguf::from_bytes(bytes) {
        Ok(g) => {
            for t in g.tensors() {
                let expected = t.kind.row_bytes(t.row_len()).expect("whole blocks") * t.rows();
                assert_eq!(t.bytes.len(), expected);
                assert_eq!(g.tensor(t.name).expect("listed").bytes.len(), expected);
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

#[test]
fn no_bytes_break_it() {
    let whole = sample();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..30_000 {
        let mut bytes = whole.clone();
        for _ in 0..rng.random_range(1..6) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..5) {
                0 => bytes[at] ^= 1 << rng.random_range(0..8),
                1 => bytes[at] = rng.random(),
                2 => {
                    // Numbers chosen to cause overflows.
                    let tempting = [
                        0,
                        1,
                        u64::MAX,
                        1 << 63,
                        u64::from(u32::MAX),
                        i64::MAX as u64,
                    ];
                    let n = tempting[rng.random_range(0..tempting.len())].to_le_bytes();
                    let end = bytes.len().min(at + 8);
                    bytes[at..end].copy_from_slice(&n[..end - at]);
                }
                3 => bytes.truncate(at.max(1)),
                _ => {
                    let end = rng.random_range(at..bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        if touch(bytes) {
            read += 1
        } else {
            refused += 1
        }
    }
    // Both branches must have been taken for this test to mean anything.
    assert!(
        read > 1_000 && refused > 1_000,
        "{read} read, {refused} refused"
    );

    for _ in 0..5_000 {
        let mut noise: Vec<u8> = b"GGUF\x03\0\0\0".to_vec();
        noise.extend(
            (0..rng.random_range(0..300))
                .map(|_| rng.random::<u8>() & rng.random::<u8>() & rng.random::<u8>()),
        );
        touch(noise);
    }
}

#[test]
fn block_sizes_match_the_file_lengths_of_a_real_model() {
    // SmolLM2-135M Q4_1: token_embd is Q8_0, 49152 x 576 = 30,081,024 bytes; ffn_down is Q4_1, 576 x 1536 = 552,960.
    assert_eq!(GgmlType::Q8_0.row_bytes(576).unwrap() * 49_152, 30_081_024);
    assert_eq!(GgmlType::Q4_1.row_bytes(1536).unwrap() * 576, 552_960);
    assert_eq!(
        GgmlType::Q4_K.row_bytes(576),
        None,
        "576 is no multiple of 256"
    );
}
