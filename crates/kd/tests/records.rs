//! Forged records of agent processes: no process is signaled because of a number in a file. Everything here runs in a
//! private PID namespace, so that a mistake kills only what the test started.
#![cfg(target_os = "linux")]

use crate::support;

use serde_json::{Value, json};
use std::process::{Command, Stdio};
use support::Home;

/// Starts bystanders and one agent of a finished run, then plants each record in turn and checks who survives.
///
/// `$1` is `kd`, `$2` the folder of the cases, `$3` the runtime folder, `$4` the members' states.
const SCRIPT: &str = r#"
set -u
started() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f20; }
# A number is lost when its process ends, so everything stays until the namespace goes.
sleep 1000 & bystander=$!
setsid sh -c 'sleep 1000 & echo $! > "$0"; exit 0' "$2/orphan"
while ! [ -s "$2/orphan" ]; do :; done
read -r orphan < "$2/orphan"
leader=$(sed 's/.*) //' "/proc/$orphan/stat" | cut -d' ' -f4)
boot=$(cat /proc/sys/kernel/random/boot_id)
ns=$(readlink /proc/self/ns/pid)
agents="$3/kd/agents"
mkdir -p -m 700 "$3/kd" "$agents"
alive() { kill -0 "$bystander" && kill -0 "$orphan" && kill -0 $$; }
for case in "$2"/*.case; do
  for place in record state; do
    text=$(sed "s/@BYSTANDER_START@/$(started "$bystander")/g; s/@BYSTANDER@/$bystander/g; s/@LEADER@/$leader/g
      s/@SHELL_START@/$(started $$)/g; s/@SHELL@/$$/g; s|@BOOT@|$boot|g; s|@NS@|$ns|g" "$case")
    if [ "$place" = record ]; then
      echo "$text" > "$agents/999999-1.json"
    else
      echo "$text" | sed 's/"agents"/"kd_processes"/; s/"seat"/"name"/' > "$4/z.json"
      echo "$text" | sed 's/"agents"/"kd_agents"/; s/"seat"/"run": "1.1", "name"/' > "$4/y.json"
    fi
    "$1" council status >/dev/null 2>"$2/said"
    alive && echo "$(basename "$case") $place alive: $(grep -c stopped "$2/said")"
    rm -f "$agents"/* "$4/z.json" "$4/y.json"
  done
done
# The record of a real agent, last: it does end it, its tool with an emptied environment too, and nobody else.
KD_FAMILY=999999.1.0 setsid sh -c 'env -i sleep 1000 & echo $! > "$0"; sleep 1000' "$2/tool" & agent=$!
while ! [ -s "$2/tool" ]; do :; done
read -r tool < "$2/tool"
echo '{"pid": 999999, "started": 1, "folder": "/", "boot": "'"$boot"'", "namespace": "'"$ns"'", "agents": [
  {"pid": '$agent', "started": '$(started $agent)', "mark": "999999.1.0", "seat": "a"}]}' > "$agents/999999-1.json"
"$1" council status >/dev/null 2>"$2/said"
gone() { ! [ -e "/proc/$1" ] || grep -q '^State:[[:space:]]*Z' "/proc/$1/status"; }
alive && gone "$agent" && gone "$tool" && echo "the real one ended: $(grep -c stopped "$2/said")"
"#;

fn record(agents: &Value) -> Value {
    json!({"pid": 999_999, "started": 1, "folder": "/", "boot": "@BOOT@", "namespace": "@NS@", "agents": agents})
}

/// Returns hostile records. Texts between `@` become process IDs of the namespace.
fn cases() -> Vec<(&'static str, String)> {
    let one = |pid: &str, started: &str, mark: &str| {
        let agent = json!([{"pid": "@P@", "started": "@S@", "mark": mark, "seat": "z"}]);
        record(&agent)
            .to_string()
            .replace("\"@P@\"", pid)
            .replace("\"@S@\"", started)
    };
    let bystander = ("@BYSTANDER@", "@BYSTANDER_START@");
    let many: Vec<Value> = (0..10_000)
        .map(|pid| json!({"pid": pid, "started": 0, "mark": "x", "seat": "z"}))
        .collect();
    vec![
        ("init", one("1", "0", "x")),
        ("init-by-its-mark", one("1", "0", "")),
        ("minus-one", one("-1", "0", "x")),
        ("zero", one("0", "0", "x")),
        ("huge", one("4294967297", "0", "x")),
        ("largest", one("2147483647", "18446744073709551615", "x")),
        ("bystander-without-start", one(bystander.0, "0", "x")),
        ("bystander-wrong-start", one(bystander.0, "7", "x")),
        ("bystander-right-start", one(bystander.0, bystander.1, "x")),
        ("bystander-empty-mark", one(bystander.0, bystander.1, "")),
        ("its-group", one("-@BYSTANDER@", bystander.1, "x")),
        ("dead-leader", one("@LEADER@", "5", "x")),
        ("dead-leader-without-start", one("@LEADER@", "0", "x")),
        ("shell", one("@SHELL@", "@SHELL_START@", "x")),
        ("shell-without-start", one("@SHELL@", "0", "x")),
        (
            "mark-of-variables",
            one(bystander.0, bystander.1, "x\u{0}HOME=/"),
        ),
        ("ten-thousand", record(&json!(many)).to_string()),
        ("first-hundred", record(&json!(many[..100])).to_string()),
        ("not-a-list", record(&json!({"pid": 1})).to_string()),
        ("nothing", String::new()),
    ]
}

#[test]
fn no_process_is_signalled_because_of_a_number_in_a_file() {
    let home = Home::scripted(&[("ada", json!({"runs": [[{"text": "Yes."}]]}))]);
    let asked = home.run(&["council", "ask", "Which?"]);
    assert_eq!(asked.code, Some(0), "{}", asked.err);
    let folder = home.path().join("cases");
    std::fs::create_dir(&folder).expect("made");
    let cases = cases();
    for (name, text) in &cases {
        std::fs::write(folder.join(format!("{name}.case")), text).expect("written");
    }
    let sessions = home.work().join(".kd/branches/main/sessions");
    std::fs::create_dir_all(&sessions).expect("made");
    let kd = home.kd(&[]);
    let runtime = home.path().join("run");
    let mut command = Command::new("unshare");
    command
        .args([
            "-r",
            "-p",
            "-f",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            SCRIPT,
            "sh",
        ])
        .args([
            kd.get_program(),
            folder.as_os_str(),
            runtime.as_os_str(),
            sessions.as_os_str(),
        ])
        .current_dir(home.work())
        .env_clear()
        .env("XDG_RUNTIME_DIR", &runtime)
        .stdin(Stdio::null());
    for (name, value) in kd.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let out = command.output().expect("unshare is there");
    let said = String::from_utf8_lossy(&out.stdout);
    let told = String::from_utf8_lossy(&out.stderr);
    if said.is_empty() && told.contains("unshare") {
        eprintln!("SKIPPED: no private namespace of processes here: {told}");
        return;
    }
    let mut want: Vec<String> = cases
        .iter()
        .flat_map(|(name, _)| {
            ["record", "state"].map(|place| format!("{name}.case {place} alive: 0"))
        })
        .collect();
    want.sort();
    want.push("the real one ended: 1".into());
    assert_eq!(said.lines().collect::<Vec<_>>(), want, "{told}");
}
