//! `kd model bench`: measures tokens per second of one member alone, and of several together, the same way as `kd ask`.

use super::super::here::Here;
use super::Error;
use crate::args::model::Bench;
use crate::face::json;
use kd_app::models::{BenchRequest, Benched, Measured, bench};
use std::io::Write;

fn as_json(benched: &Benched) -> serde_json::Value {
    let row = |m: &Measured| {
        serde_json::json!({"members": m.members, "tokens": m.tokens, "tokens_per_second": m.speed(),
            "first_word_seconds": m.first.as_secs_f64(), "seconds": m.whole.as_secs_f64()})
    };
    let v = kd_core::formats::MODEL_BENCH.version;
    serde_json::json!({"v": v, "alone": row(&benched.alone), "together": row(&benched.together), "gain": benched.gain()})
}

pub(super) fn run(args: &Bench, here: &Here) -> Result<(), Error> {
    let request = BenchRequest {
        model: args.model.clone(),
        members: args.members,
        tokens: args.tokens,
    };
    let benched = bench(&request, here)?;
    let mut out = crate::out::stdout().lock();
    if args.json {
        writeln!(out, "{}", json::text(&as_json(&benched), true)?)?;
        return Ok(());
    }
    for m in [&benched.alone, &benched.together] {
        writeln!(
            out,
            "{:>2} at once: {:7.1} tokens/s, first word after {:.2} s, {} tokens in {:.2} s",
            m.members,
            m.speed(),
            m.first.as_secs_f64(),
            m.tokens,
            m.whole.as_secs_f64()
        )?;
    }
    writeln!(
        out,
        "together {:.1} times the speed of one after another",
        benched.gain()
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A measurement needs a model, so the schema is checked here.
    #[test]
    fn the_output_is_what_its_schema_says() {
        let of = |members| Measured {
            members,
            tokens: 64,
            first: Duration::from_millis(200),
            whole: Duration::from_secs(2),
        };
        let schema = include_str!("../../../../../docs/schemas/model-bench.schema.json");
        let schema = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut value = as_json(&Benched {
            alone: of(1),
            together: of(3),
        });
        assert!(validator.is_valid(&value), "{value}");
        value["zz"] = 1.into();
        assert!(!validator.is_valid(&value));
    }
}
