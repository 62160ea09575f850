//! Files of other evaluation tools: each score is the one that the tool states.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may fail and read files as a test may"
)]

use kd_records::{FORMATS, File, Gold, Joined, Unread, Wanted, read, written};
use serde_json::{Value, json};
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// Returns the files of a folder.
fn folder(name: &str) -> Vec<File> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(data(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| match path.is_dir() {
        true => folder(&format!(
            "{name}/{}",
            path.file_name().unwrap().to_string_lossy()
        )),
        false => vec![File::found(
            &path.to_string_lossy(),
            std::fs::read(&path).unwrap(),
        )],
    };
    paths.into_iter().flat_map(read).collect()
}

fn only(mut files: Vec<File>, name: &str) -> Vec<File> {
    files.retain(|file| file.path.contains(name));
    files
}

fn metric(name: &str) -> Wanted {
    Wanted {
        metric: Some(name.to_owned()),
        ..Wanted::default()
    }
}

/// Returns the share of right answers of a member, over the questions of a task that it was asked.
fn right(joined: &Joined, member: &str, task: &str) -> f64 {
    let replay = joined.table.council(&[member.to_owned()]).unwrap();
    let of_task = |id: &String| joined.about[id].task == task;
    let marks: Vec<bool> = replay
        .questions
        .iter()
        .filter(|question| of_task(&question.id))
        .map(|question| question.is_right(0))
        .collect();
    assert!(!marks.is_empty(), "{member} {task}");
    marks.iter().filter(|is_right| **is_right).count() as f64 / marks.len() as f64
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn the_tool_decides_what_is_right_and_not_the_text() {
    let file = lines(
        "samples.jsonl",
        &[
            sample("ada", "s1", "three", true),
            sample("bob", "s1", "It is 3.", true),
            sample("cyd", "s1", "3", false),
            sample("dan", "s1", "three", false),
        ],
    );
    let joined = read(&[file], &Wanted::default()).unwrap();
    let council = joined.table.council(&[]).unwrap();
    let question = &council.questions[0];
    assert_eq!(question.keys, ["3", "3 (wrong)", "three"]);
    assert_eq!(question.right, [true, false, false]);
    assert_eq!(question.answers, [Some(0), Some(0), Some(1), Some(2)]);
}

/// Returns an entry of an archive of Inspect.
fn entry(bytes: &[u8], name: &str) -> Vec<u8> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let at = archive.index_for_name(name).unwrap();
    let mut out = Vec::new();
    let raw = archive.by_index_raw(at).unwrap();
    let mut stream = ruzstd::decoding::StreamingDecoder::new(raw).unwrap();
    stream.read_to_end(&mut out).unwrap();
    out
}

#[test]
fn scores_of_inspect_are_its_own() {
    let files = folder("inspect");
    let joined = read(&files, &Wanted::default()).unwrap();
    assert_eq!(
        joined.table.members,
        [
            "mockllm/ada#1",
            "mockllm/ada#2",
            "mockllm/bob",
            "mockllm/cyd",
            "mockllm/dan"
        ]
    );
    for file in &files {
        let head: Value = match file.path.ends_with(".eval") {
            true => serde_json::from_slice(&entry(&file.bytes, "header.json")).unwrap(),
            false => serde_json::from_slice(&file.bytes).unwrap(),
        };
        let (task, model) = (
            head["eval"]["task"].as_str().unwrap(),
            &head["eval"]["model"],
        );
        let model = model.as_str().unwrap();
        let stated = head["results"]["scores"][0]["metrics"]["accuracy"]["value"]
            .as_f64()
            .unwrap();
        let scores = match (task, model) {
            // Two epochs: Inspect states the mean.
            ("sums", _) => {
                (right(&joined, "mockllm/ada#1", task) + right(&joined, "mockllm/ada#2", task))
                    / 2.0
            }
            (_, "mockllm/ada") => right(&joined, "mockllm/ada#1", task),
            _ => right(&joined, model, task),
        };
        assert!(is_near(scores, stated), "{}: {scores} {stated}", file.path);
    }
    let quiz = read(&only(files, "quiz"), &Wanted::default()).unwrap();
    let council = quiz.table.council(&[]).unwrap();
    assert_eq!(
        (council.questions.len(), council.dropped, council.options),
        (6, 0, Some(3))
    );
    assert_eq!(quiz.dropped, []);
}

/// The same log as an archive of another kind.
fn zipped(bytes: &[u8], names: &[(&str, &str)], method: CompressionMethod) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (from, to) in names {
        out.start_file(*to, SimpleFileOptions::default().compression_method(method))
            .unwrap();
        out.write_all(&entry(bytes, from)).unwrap();
    }
    out.finish().unwrap().into_inner()
}

#[test]
fn archives_of_inspect_are_read_however_they_are_compressed_and_where_a_run_was_cut() {
    let bytes = std::fs::read(data("inspect/quiz-bob.eval")).unwrap();
    let whole = read(&[File::new("a", bytes.clone())], &Wanted::default()).unwrap();
    let cases = [
        (
            vec![
                ("header.json", "header.json"),
                ("summaries.json", "summaries.json"),
            ],
            CompressionMethod::Deflated,
        ),
        (
            vec![
                ("header.json", "header.json"),
                ("summaries.json", "summaries.json"),
            ],
            CompressionMethod::Stored,
        ),
        (
            vec![
                ("_journal/start.json", "_journal/start.json"),
                ("summaries.json", "_journal/summaries/1.json"),
            ],
            CompressionMethod::Deflated,
        ),
    ];
    for (names, method) in cases {
        let joined = read(
            &[File::new("a", zipped(&bytes, &names, method))],
            &Wanted::default(),
        );
        assert_eq!(joined.unwrap().table, whole.table, "{names:?} {method}");
    }
}

#[test]
fn scores_of_lm_eval_are_its_own_for_every_metric_and_filter() {
    for (task, metrics) in [
        ("quiz", vec!["acc,none", "acc_norm,none"]),
        ("sums", vec!["exact_match,get-number", "exact_match,none"]),
    ] {
        for name in &metrics {
            let mut files = folder("lm-eval");
            files.retain(|file| !file.path.contains("samples_") || file.path.contains(task));
            let joined = read(&files, &metric(name)).unwrap();
            assert_eq!(joined.table.members, ["ada", "bob", "cyd"]);
            for member in ["ada", "bob", "cyd"] {
                let summary = files
                    .iter()
                    .find(|file| file.path.contains(&format!("{member}/results")));
                let summary: Value = serde_json::from_slice(&summary.unwrap().bytes).unwrap();
                let stated = summary["results"][task][name].as_f64().unwrap();
                let own = right(&joined, member, task);
                assert!(
                    is_near(own, stated),
                    "{member} {task} {name}: {own} {stated}"
                );
            }
            let council = joined.table.council(&[]).unwrap();
            assert_eq!(council.questions.len(), 6);
            // The answer that is read is the one that the metric looks at.
            let keys: Vec<&String> = council.questions.iter().flat_map(|q| &q.keys).collect();
            assert!(
                !keys.iter().any(|key| key.ends_with("(wrong)")),
                "{name}: {keys:?}"
            );
        }
        // Without --metric: the first.
        let files = only(folder("lm-eval"), &format!("samples_{task}"));
        let usual = read(&files, &Wanted::default()).unwrap();
        assert_eq!(
            usual.table,
            read(&files, &metric(metrics[0])).unwrap().table
        );
        let error = read(&files, &metric("acc_nrm,none")).unwrap_err();
        assert!(error.hint.contains(metrics[1]), "{error:?}");
    }
}

#[test]
fn samples_of_lm_eval_are_joined_by_the_document_and_not_by_its_number() {
    let files = only(folder("lm-eval"), "samples_quiz");
    let expected = read(&files, &Wanted::default())
        .unwrap()
        .table
        .council(&[])
        .unwrap();
    let mut shuffled = files.clone();
    let text = String::from_utf8(files[1].bytes.clone()).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    lines.reverse();
    for (n, line) in lines.iter_mut().enumerate() {
        line["doc_id"] = n.into();
    }
    lines.pop();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    shuffled[1].bytes = text.into_bytes();
    let joined = read(&shuffled, &Wanted::default()).unwrap();
    let council = joined.table.council(&[]).unwrap();
    assert_eq!((council.questions.len(), council.dropped), (5, 1));
    assert_eq!(council.questions, expected.questions[1..]);
}

#[test]
fn scores_of_promptfoo_are_its_own_and_its_errors_are_no_answers() {
    let file = File::new(
        "results.json",
        std::fs::read(data("promptfoo/results.json")).unwrap(),
    );
    let stated: Value = serde_json::from_slice(&file.bytes).unwrap();
    let joined = read(&[file], &Wanted::default()).unwrap();
    assert_eq!(joined.table.members, ["ada", "bob", "cyd"]);
    for prompt in stated["results"]["prompts"].as_array().unwrap() {
        let count = |name: &str| prompt["metrics"][name].as_f64().unwrap();
        let (passed, failed) = (count("testPassCount"), count("testFailCount"));
        let own = right(&joined, prompt["provider"].as_str().unwrap(), "");
        assert!(is_near(own, passed / (passed + failed)), "{prompt}");
    }
    let dropped: Vec<_> = joined
        .dropped
        .iter()
        .map(|one| (one.what.as_str(), one.example.as_str()))
        .collect();
    assert_eq!(dropped, [("1 answer", "cyd on 3")]);
    let council = joined.table.council(&[]).unwrap();
    assert_eq!((council.questions.len(), council.dropped), (3, 1));
    assert_eq!(council.questions[0].cost[0], Some(0.001));
    // Right answers agree, however they are written.
    let last = council.questions.last().unwrap();
    assert_eq!(last.answers[0], last.answers[1]);
}

/// A run of HELM: options A and B, of which the second is right for odd numbers.
fn helm(model: &str, said: &[&str]) -> Vec<File> {
    let states: Vec<Value> = said
        .iter()
        .enumerate()
        .map(|(at, said)| {
            let right = usize::from(at % 2 == 1);
            let references: Vec<Value> = ["north", "south"]
                .iter()
                .enumerate()
                .map(|(n, text)| {
                    let tags = if n == right { vec!["correct"] } else { vec![] };
                    json!({"output": {"text": text}, "tags": tags})
                })
                .collect();
            json!({
                "instance": {"id": format!("id{at}"), "split": "test", "input": {"text": format!("Question {at}?")}, "references": references},
                "train_trial_index": 0,
                "output_mapping": {"A": "north", "B": "south"},
                "result": {"success": true, "completions": [{"text": format!(" {said}"), "logprob": -1.0, "tokens": []}]},
            })
        })
        .collect();
    let scores: Vec<Value> = said
        .iter()
        .enumerate()
        .map(|(at, said)| {
            let is_right = *said == ["A", "B"][at % 2];
            let stat = |name: &str, mean: f64| json!({"name": {"name": name, "split": "test"}, "count": 1, "mean": mean});
            json!({"instance_id": format!("id{at}"), "train_trial_index": 0, "stats": [
                stat("num_references", 2.0), stat("exact_match", f64::from(u8::from(is_right)))]})
        })
        .collect();
    let name = format!("quiz:subject=maps,model={model}");
    let file = |name: &str, value: Value| {
        File::found(
            &format!("runs/{model}/{name}"),
            format!("{value:#}").into_bytes(),
        )
    };
    vec![
        file("per_instance_stats.json", json!(scores)),
        file(
            "run_spec.json",
            json!({"name": name, "scenario_spec": {}, "adapter_spec": {}}),
        ),
        file(
            "scenario_state.json",
            json!({"adapter_spec": {"method": "multiple_choice_joint", "model": format!("lab/{model}")}, "request_states": states}),
        ),
        file(
            "stats.json",
            json!([{"name": {"name": "exact_match"}, "count": 4, "sum": 2, "mean": 0.5}]),
        ),
    ]
}

#[test]
fn runs_of_helm_are_joined_by_the_instance() {
    let files = [
        helm("ada", &["A", "B", "A", "A"]),
        helm("bob", &["A", "A", "B", "B"]),
    ]
    .concat();
    let joined = read(&files, &Wanted::default()).unwrap();
    assert_eq!(joined.table.members, ["lab/ada", "lab/bob"]);
    let task = "quiz:subject=maps";
    assert!(is_near(right(&joined, "lab/ada", task), 0.75));
    assert!(is_near(right(&joined, "lab/bob", task), 0.5));
    let council = joined.table.council(&[]).unwrap();
    assert_eq!((council.questions.len(), council.options), (4, Some(2)));
    assert_eq!(council.questions[0].keys, ["north"]);
    assert_eq!((joined.sources.len(), joined.dropped.len()), (2, 0));
    let alone: Vec<File> = files
        .into_iter()
        .filter(|file| !file.path.contains("stats"))
        .collect();
    let error = read(&alone, &Wanted::default()).unwrap_err();
    assert!(error.what.contains("per_instance_stats.json"), "{error}");
}

/// A sample of Every Eval Ever.
fn sample(model: &str, id: &str, said: &str, is_correct: bool) -> Value {
    json!({
        "schema_version": "0.3.0", "evaluation_id": "sums/x/1", "model_id": model, "evaluation_name": "sums",
        "sample_id": id, "interaction_type": "single_turn", "input": {"raw": format!("{id}?"), "reference": ["3"]},
        "output": {"raw": [format!("It is {said}.")]},
        "answer_attribution": [{"turn_idx": 0, "source": "output.raw", "extracted_value": said,
            "extraction_method": "regex", "is_terminal": true}],
        "evaluation": {"score": if is_correct { 1.0 } else { 0.0 }, "is_correct": is_correct},
    })
}

fn lines(path: &str, values: &[Value]) -> File {
    let text: String = values.iter().map(|value| format!("{value}\n")).collect();
    File::new(path, text.into_bytes())
}

#[test]
fn samples_of_every_eval_ever_are_read_and_written() {
    let file = lines(
        "samples.jsonl",
        &[
            sample("lab/ada", "s1", "3", true),
            sample("lab/ada", "s2", "4", false),
            sample("lab/bob", "s1", "3", true),
            sample("lab/bob", "s2", "3", true),
            sample("lab/cyd", "s1", "5", false),
            sample("lab/cyd", "s2", "3", true),
        ],
    );
    let joined = read(&[file], &Wanted::default()).unwrap();
    assert_eq!(joined.table.members, ["lab/ada", "lab/bob", "lab/cyd"]);
    assert!(is_near(right(&joined, "lab/ada", "sums"), 0.5));
    let replay = joined.table.council(&[]).unwrap();
    let ways = [kd_eval::deciders::Way::find("plurality").unwrap()];
    let files = written(
        &replay,
        &ways,
        &joined.about,
        (20, 0),
        (1_795_000_000, "0.1.0"),
    );
    let [summary, samples] = files.as_slice() else {
        panic!("{files:?}")
    };
    let value: Value = serde_json::from_str(&summary.text).unwrap();
    assert_eq!(
        value["evaluation_results"][0]["score_details"]["score"],
        1.0
    );
    assert_eq!(
        value["detailed_evaluation_results"]["file_path"],
        samples.path.as_str()
    );
    let again = read(
        &[File::new(&samples.path, samples.text.clone().into_bytes())],
        &Wanted::default(),
    );
    let again = again.unwrap();
    assert_eq!(again.table.members, ["kingdom/plurality"]);
    assert!(is_near(right(&again, "kingdom/plurality", "sums"), 1.0));
    assert_eq!(again.about["s1"].gold, ["3"]);
}

fn batch(id: &str, question: &str, said: &[(&str, &str)], answer: &str) -> Value {
    let answers: Vec<Value> = said
        .iter()
        .map(|(member, text)| json!({"member": member, "text": text}))
        .collect();
    json!({"v": 1, "batch": "batch-1", "id": id, "n": 1, "question": question, "status": "answered",
        "answer": answer, "answers": answers})
}

#[test]
fn results_of_a_batch_are_marked_by_a_file_of_right_answers() {
    let question = "Which is larger? A) Mars B) Venus";
    let file = lines(
        "r.jsonl",
        &[
            batch(
                "1",
                question,
                &[("ada", "The answer is B."), ("bob", "A")],
                "B) Venus",
            ),
            batch(
                "2",
                question,
                &[("ada", "**Answer: B**"), ("bob", "I cannot tell.")],
                "B",
            ),
            batch("3", "Not marked?", &[("ada", "A")], "A"),
        ],
    );
    let error = read(std::slice::from_ref(&file), &Wanted::default()).unwrap_err();
    assert!(error.hint.contains("--gold FILE"), "{error:?}");
    for text in [
        "id,gold\n1,B\n2,A\n",
        "{\"id\": 1, \"gold\": \"B\"}\n{\"id\": \"2\", \"gold\": \"A\"}\n",
    ] {
        let wanted = Wanted {
            gold: Some(Gold::read(text).unwrap()),
            ..Wanted::default()
        };
        let joined = read(std::slice::from_ref(&file), &wanted).unwrap();
        assert_eq!(joined.table.members, ["ada", "bob", "council"]);
        let [dropped] = joined.dropped.as_slice() else {
            panic!("{:?}", joined.dropped)
        };
        assert_eq!(
            (dropped.what.as_str(), dropped.example.as_str()),
            ("2 answers", "ada on 3")
        );
        assert!(dropped.why.contains("right answers"), "{dropped:?}");
        for (member, share) in [("ada", 0.5), ("bob", 0.0), ("council", 0.5)] {
            assert!(is_near(right(&joined, member, ""), share), "{member}");
        }
    }
    for (bad, line) in [
        ("id,gold\n1,B\n1,A\n", 3),
        ("id\n1\n", 1),
        ("id,gold\n1,\n", 2),
        ("{\"id\": 1}\n", 1),
    ] {
        assert_eq!(Gold::read(bad).unwrap_err().0, line, "{bad}");
    }
    // Numbers and words.
    for (gold, reply, is_right) in [
        ("1,1234", "It is 1,234.", true),
        ("1,1234", "It is 1235.", false),
        ("1,the Nile", "The Nile", true),
        ("1,the Nile", "The Rhine", false),
    ] {
        let wanted = Wanted {
            gold: Some(Gold::read(&format!("id,gold\n{gold}\n")).unwrap()),
            ..Wanted::default()
        };
        let file = lines("r.jsonl", &[batch("1", "Which?", &[("ada", reply)], reply)]);
        let joined = read(&[file], &wanted).unwrap();
        assert!(
            is_near(right(&joined, "ada", ""), f64::from(u8::from(is_right))),
            "{gold} {reply}"
        );
    }
}

#[test]
fn what_does_not_fit_is_dropped_with_its_reason() {
    let good = |model: &str| sample(model, "s1", "3", true);
    let changed = |model: &str, change: fn(&mut Value)| {
        let mut value = sample(model, "s2", "3", true);
        change(&mut value);
        value
    };
    let failed = changed("bob", |value| {
        value["error"] = "timed out".into();
        value["evaluation"]["is_correct"] = false.into();
    });
    for (second, what, why) in [
        (failed, "1 answer", "no score"),
        (
            changed("bob", |value| value["input"]["raw"] = "Other?".into()),
            "1 question",
            "another text",
        ),
        (
            changed("bob", |value| value["input"]["reference"] = json!(["4"])),
            "1 question",
            "right answer differs",
        ),
        (changed("ada", |_| {}), "1 answer", "in another file"),
    ] {
        let files = [
            lines("a.jsonl", &[good("ada"), changed("ada", |_| {})]),
            lines("b.jsonl", &[good("bob"), second]),
        ];
        let joined = read(&files, &Wanted::default()).unwrap();
        let [dropped] = joined.dropped.as_slice() else {
            panic!("{why}: {:?}", joined.dropped)
        };
        assert_eq!(dropped.what, what, "{dropped:?}");
        assert!(dropped.why.contains(why), "{dropped:?}");
        assert_eq!(
            joined
                .table
                .council(&["bob".into()])
                .unwrap()
                .questions
                .len(),
            1,
            "{why}"
        );
    }
    // Scores between right and wrong.
    let text = std::fs::read_to_string(only(folder("lm-eval"), "ada/samples_quiz")[0].path.clone())
        .unwrap();
    let text = text.replacen("\"acc\": 1.0", "\"acc\": 0.5", 1);
    let joined = read(
        &[File::new("x/samples_quiz_1.jsonl", text.into_bytes())],
        &Wanted::default(),
    )
    .unwrap();
    assert!(
        joined.dropped[0].why.contains("neither 0 nor 1"),
        "{:?}",
        joined.dropped
    );
}

#[test]
fn unknown_and_damaged_files_are_errors_that_say_what_to_do() {
    let log = std::fs::read(data("inspect/quiz-bob.eval")).unwrap();
    let mut cut = log.clone();
    cut.truncate(log.len() / 2);
    let mut flipped = log.clone();
    let summaries = flipped.len() - 9_000;
    flipped[summaries..]
        .iter_mut()
        .step_by(7)
        .for_each(|byte| *byte ^= 0x55);
    let other = zipped(
        &log,
        &[("header.json", "notes.json")],
        CompressionMethod::Stored,
    );
    let newer =
        b"{\"evalId\": \"x\",\n\"config\": {}, \"results\": {\"version\": 4, \"results\": []}}"
            .to_vec();
    let text = "{\"doc_id\": 0, \"doc\": {}, \"target\": 1, \"filtered_resps\": []}\n{\"doc_id\": 0, \"do\n";
    for (bytes, what) in [
        (b"hello".to_vec(), "no known format"),
        (b"[]".to_vec(), "no known format"),
        (b"\xff\xfe".to_vec(), "no known format"),
        (cut, "no known format"),
        (other, "no known format"),
        (newer, "version 4"),
        (text.as_bytes().to_vec(), "line 2"),
    ] {
        let error = read(&[File::new("a file", bytes)], &Wanted::default()).unwrap_err();
        assert!(
            error.what.contains(what) && !error.hint.is_empty(),
            "{what}: {error:?}"
        );
    }
    assert!(read(&[File::new("a file", flipped)], &Wanted::default()).is_err());
    // In a folder such files are skipped.
    let files = [
        File::found("notes.json", b"{}".to_vec()),
        File::new("a", log),
    ];
    let joined = read(&files, &Wanted::default()).unwrap();
    assert_eq!(joined.dropped[0].why, "no format fits");
    let nothing: Result<Joined, Unread> = read(&files[..1], &Wanted::default());
    assert!(nothing.unwrap_err().what.contains("no answer is left"));
    assert!(FORMATS.iter().all(|format| !format.doc.is_empty()));
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let mut files = folder("inspect");
    files.extend(folder("lm-eval"));
    files.extend(folder("promptfoo"));
    files.extend(helm("ada", &["A"]));
    let mut state = 7_u64;
    for _ in 0..300 {
        for n in [0, files.len() / 2, files.len() - 2] {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let mut file = files[(n + (state >> 40) as usize) % files.len()].clone();
            let at = (state >> 20) as usize % file.bytes.len();
            match state % 3 {
                0 => file.bytes.truncate(at),
                1 => file.bytes[at] ^= 1 << (state % 8),
                _ => drop(file.bytes.splice(at..at, *b"\x00}]\"")),
            }
            let _ = read(&[file], &Wanted::default());
        }
    }
}
