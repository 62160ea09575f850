//! A plan as an editable document: `--edit` opens it and `--plan` reads it.

use crate::deliberation::answer::AnswerKind;
use crate::deliberation::plan::Plan;
use serde_json::{Value, json};

/// Returns the document of a plan. Parsing it gives the same plan for the same question and seed.
pub fn document(plan: &Plan) -> Value {
    let members: Vec<Value> = plan
        .seats
        .iter()
        .map(|seat| {
            let mut fields = serde_json::Map::new();
            fields.insert("model".into(), json!(seat.agent));
            fields.insert("role".into(), json!(seat.role));
            if let Some(persona) = &seat.persona {
                fields.insert("persona".into(), json!(persona));
            }
            if let Some(temperature) = seat.member.sampling.temperature {
                // Rounded for readers: 0.6, not the nearest binary fraction.
                let short: f64 = format!("{temperature}")
                    .parse()
                    .unwrap_or(f64::from(temperature));
                fields.insert("temperature".into(), json!(short));
            }
            if seat.member.weight != 1.0 {
                fields.insert("weight".into(), json!(seat.member.weight));
            }
            Value::Object(fields)
        })
        .collect();
    let mut voting = serde_json::Map::from_iter([("method".to_owned(), json!(plan.voting.method))]);
    if let Some(threshold) = plan.voting.threshold {
        voting.insert("threshold".into(), json!(threshold));
    }
    let it = &plan.iteration;
    json!({
        "meta": {
            "planningMode": plan.meta.planning_mode,
            "complexity": plan.meta.complexity,
            "domain": plan.meta.domain,
            "reasoning": plan.meta.reasoning,
        },
        "council": {
            "size": members.len(),
            "members": members,
            "voting": voting,
        },
        "iteration": {
            "enabled": it.enabled,
            "maxIterations": it.max_iterations,
            "maxTokens": plan.limits.tokens,
            "maxDurationMs": plan.limits.duration_ms.unwrap_or(120_000),
            "maxDepth": it.max_depth,
            "convergenceThreshold": it.convergence_threshold,
            "improvementThreshold": it.improvement_threshold,
            "strategy": it.strategy,
        },
        "memory": {
            "enabled": plan.memory.enabled,
            "compression": plan.memory.compression,
            "maxContextTokens": plan.memory.max_context_tokens,
        },
        "protocol": plan.protocol,
        "askBack": plan.ask_back.is_some(),
        // An explicit `text` disables comparison; a kind found by the rules is found again.
        "answer": (plan.answers != AnswerKind::Text || !plan.judged).then(|| plan.answers.written()),
        "rounds": plan.rounds,
        "samples": plan.samples,
        "maxCalls": plan.limits.calls,
        "answerTokens": plan.limits.answer_tokens,
    })
}
