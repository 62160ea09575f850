use super::*;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use serde_json::{Value, json};

fn key() -> SecretKey {
    SecretKey::from_bytes(&[7; 32])
}

fn sealed() -> Seal {
    let piece = |at: u8, kind, name: &str, text: &str| Piece {
        kind,
        name: name.into(),
        text: text.into(),
        salt: [at; SALT_BYTES],
    };
    let pieces = [
        piece(
            0,
            Kind::Thread,
            "thread.json",
            "{\n  \"id\": \"council-a94d\"\n}\n",
        ),
        piece(
            1,
            Kind::Message,
            "0001-king.md",
            "Tabs \"or\" spaces?\r\n\u{1b}[31m\u{7f} é 🦀 \u{2028}\n",
        ),
        piece(2, Kind::Message, "0002-ann.md", ""),
        piece(3, Kind::Event, ".kd-events.jsonl", r#"{"v":1,"n":1.0e2}"#),
    ];
    let mut seal = Seal::new("council-a94d", "2026-11-23T08:00:00Z", pieces).unwrap();
    seal.sign(&key()).unwrap();
    seal
}

#[test]
fn the_vectors_of_rfc_8785() {
    let text = |input: &str| {
        let value: Value = serde_json::from_str(input).unwrap();
        String::from_utf8(canonical(&value).unwrap()).unwrap()
    };
    // 3.2.2 and 3.2.4: numbers, escapes and literals.
    let sample = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    assert_eq!(
        text(sample),
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    // 3.2.3: keys in the order of their UTF-16 code units.
    let keys = r#"{
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let order: Vec<_> = text(keys)
        .split('"')
        .skip(3)
        .step_by(4)
        .map(str::to_owned)
        .collect();
    let wanted = [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ];
    assert_eq!(order, wanted);
    // Appendix B: IEEE 754 doubles.
    for (bits, number) in [
        (0x0000000000000000, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xc340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef4e, "999999999999999700000"),
        (0x444b1ae4d6e2ef4f, "999999999999999900000"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ] {
        let bytes = canonical(&f64::from_bits(bits)).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), number);
    }
    assert!(canonical(&f64::NAN).is_err() && canonical(&f64::INFINITY).is_err());
}

#[test]
fn a_signature_is_that_of_rfc_8032() {
    // 7.1, test 1: the empty message.
    let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
    let key = SecretKey::parse(secret).unwrap();
    assert_eq!(key.public().to_string(), public);
    assert_eq!(key.sign(b""), signature);
    assert!(key.public().verifies(b"", signature));
    assert!(!key.public().verifies(b"x", signature));
    assert_eq!(format!("{key:?}"), "[key]");
    assert_eq!(
        SecretKey::parse(&key.to_file()).unwrap().public(),
        key.public()
    );
    // The identity element: anybody can sign for it.
    let weak = format!("01{}", "0".repeat(62));
    for (text, why) in [
        ("", KeyError::Digits),
        ("d75a", KeyError::Digits),
        (&public.to_uppercase(), KeyError::Digits),
        (&weak, KeyError::NoKey),
        (&"0".repeat(64), KeyError::NoKey),
    ] {
        assert_eq!(PublicKey::parse(text), Err(why), "{text}");
    }
}

#[test]
fn a_seal_is_read_back_and_says_who_signed() {
    let seal = sealed();
    let bytes = seal.to_bytes().unwrap();
    let read = Seal::read(&bytes).unwrap();
    assert_eq!(read, seal);
    assert_eq!(read.signer(), Some(key().public()));
    assert_eq!(read.contents(), (4, 0));
    let empty = Seal::new("council-0000", "", []).unwrap();
    assert_eq!(Seal::read(&empty.to_bytes().unwrap()).unwrap(), empty);
}

#[test]
fn erased_contents_leave_the_head_and_the_signature() {
    let mut seal = sealed();
    let head = seal.head.clone();
    seal.entries[1].opened = None;
    let read = Seal::read(&seal.to_bytes().unwrap()).unwrap();
    assert_eq!((read.contents(), &read.head), ((3, 1), &head));
    seal.erase();
    let bytes = seal.to_bytes().unwrap();
    let read = Seal::read(&bytes).unwrap();
    assert_eq!((read.contents(), &read.head), ((0, 4), &head));
    assert!(read.signer().is_some());
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains("Tabs") && !text.contains("salt"), "{text}");
}

#[test]
fn the_same_text_has_another_hash_under_another_salt() {
    let of = |salt| {
        let piece = Piece {
            kind: Kind::Message,
            name: "0001-king.md".into(),
            text: "yes".into(),
            salt: [salt; SALT_BYTES],
        };
        Seal::new("t", "", [piece]).unwrap().entries[0]
            .content
            .clone()
    };
    assert_ne!(of(1), of(2));
}

/// Changes one byte of a seal `times` times and counts the undetected changes.
fn unfound(times: u64) -> u64 {
    let forms = [
        sealed(),
        {
            let mut s = sealed();
            s.erase();
            s
        },
        {
            let mut s = sealed();
            s.signature = None;
            s
        },
    ];
    let forms = forms.map(|seal| seal.to_bytes().unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let mut unfound = 0;
    for _ in 0..times {
        let mut bytes = forms[rng.random_range(0..forms.len())].clone();
        let at = rng.random_range(0..bytes.len());
        match rng.random_range(0..8) {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, rng.random()),
            _ => bytes[at] ^= rng.random_range(1..=255u8),
        }
        // Inserting or removing a byte next to an equal one may give the same file.
        unfound += u64::from(!forms.contains(&bytes) && Seal::read(&bytes).is_ok());
    }
    unfound
}

#[test]
fn a_changed_byte_is_found() {
    assert_eq!(unfound(2_000), 0);
}

/// `cargo test -p kd-core --release --lib a_million -- --ignored`
#[test]
#[ignore = "minutes"]
fn a_million_changed_bytes_are_found() {
    assert_eq!(unfound(1_000_000), 0);
}

#[test]
fn what_means_the_same_in_other_bytes_is_refused() {
    let good = String::from_utf8(sealed().to_bytes().unwrap()).unwrap();
    let swap = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    let not_canonical = [
        good.replace('\n', "\r\n"),
        good.trim_end().to_owned(),
        format!("{good}\n"),
        format!(" {good}"),
        swap("\"entries\":", "\"entries\": "),
        swap("Tabs", "T\\u0061bs"),
        swap("é", "\\u00e9"),
        swap("\\u001b", "\\u001B"),
    ];
    for text in not_canonical {
        let read = Seal::read(text.as_bytes());
        assert!(
            matches!(read, Err(SealError::NotCanonical(_))),
            "{read:?}: {text}"
        );
    }
    let malformed = [
        format!("{good}{{}}"),
        format!("{good}\0"),
        format!("\u{feff}{good}"),
        // An unknown field, a duplicate field, and `null` for an absent one.
        swap("{\"entries\"", "{\"also\":1,\"entries\""),
        swap("\"index\":0", "\"index\":0,\"index\":0"),
        swap("\"signature\":{", "\"signature\":null,\"signature\":{"),
        swap("\"index\":0", "\"index\":0.0"),
        swap("\"index\":0", "\"index\":-0"),
        "[".repeat(1 << 20),
        format!("{{\"header\":{}", "{\"a\":".repeat(1 << 18)),
        String::new(),
        "{}".into(),
        "null".into(),
    ];
    for text in malformed {
        let read = Seal::read(text.as_bytes());
        assert!(
            matches!(read, Err(SealError::Malformed(_))),
            "{read:?}: {:.300}",
            text
        );
    }
    assert!(Seal::read(b"\xff\xfe").is_err());
}

#[test]
fn each_lie_is_told_by_its_name() {
    let said = |change: &dyn Fn(&mut Value)| {
        let mut value = serde_json::to_value(sealed()).unwrap();
        change(&mut value);
        let mut bytes = canonical(&value).unwrap();
        bytes.push(b'\n');
        Seal::read(&bytes).unwrap_err().to_string()
    };
    let entry = |at: usize, key: &'static str, to: Value| {
        move |v: &mut Value| v["entries"][at][key] = to.clone()
    };
    assert_eq!(
        said(&|v| v["entries"][1]["opened"]["text"] = "Spaces.".into()),
        "entry 1 (0001-king.md): its content was changed"
    );
    assert!(said(&entry(2, "name", json!("0002-bob.md"))).contains("its hash differs"));
    assert!(said(&entry(2, "index", json!(3))).contains("another index"));
    assert!(
        said(&|v| {
            v["entries"].as_array_mut().unwrap().remove(2);
        })
        .contains("another index")
    );
    assert!(
        said(&|v| {
            v["entries"].as_array_mut().unwrap().pop();
        })
        .contains("1 events, and 0 are there")
    );
    assert!(said(&|v| v["header"]["thread"] = "council-b".into()).contains("does not follow"));
    assert!(said(&|v| v["head"] = "00".into()).contains("the head"));
    assert!(said(&|v| v["signature"]["algorithm"] = "none".into()).contains("unknown algorithm"));
    assert!(
        said(&|v| v["signature"]["key"] =
            SecretKey::from_bytes(&[8; 32]).public().to_string().into())
        .contains("not by this key")
    );
    assert!(
        said(&|v| {
            v["header"]["v"] = 2.into();
            v["more"] = 1.into();
        })
        .contains("version 2")
    );
    // Another thread whose hashes are all right: only the signature reveals it.
    let signature = sealed().signature;
    let mut forged = Seal::new("council-a94d", "", []).unwrap();
    forged.signature = signature;
    let read = Seal::read(&forged.to_bytes().unwrap());
    assert!(matches!(read, Err(SealError::Signature(_))), "{read:?}");
}
