# Part of `run`: Claude Code, Codex and opencode with their real tools, each in a working copy of its own, beside each other.
# Uses $work, $here, $tools_url, $token, $turns, $claude_code, $codex, $opencode and skip.
#
# 5 turns each; 50 with KD_CLIENTS_AGENTS=1.

# Seconds for the turns of one of them.
patience=$((60 + 12 * turns))
# Makes a working copy and enters it.
copy() {
    mkdir -p "$work/agents/$1"
    cd "$work/agents/$1"
    git init -q
    git config user.email t@example.org
    git config user.name t
}
# Says whether every command was run: each tenth fails and commits nothing.
commits() {
    local n wanted=$((turns - turns / 10))
    n=$( (git log --oneline 2>/dev/null || true) | wc -l)
    [ "$n" = "$wanted" ] || { echo "FAILED  $1: $n commits of $wanted"; tail -n 20 "$2"; exit 1; }
    echo "passed  $1: $turns turns with its own tools in a working copy"
}
# Installs a program of npm into a folder of its own.
install() {
    npm install --silent --no-audit --no-fund --prefix "$work/agent-programs/$1" "$2" >"$work/npm-$1.log" 2>&1
}

turns_of_claude() {
    install claude "$claude_code" || { skip "Claude Code" "$(tail -n 1 "$work/npm-claude.log")"; return; }
    copy claude
    mkdir -p "$work/claude-home"
    HOME=$work/claude-home ANTHROPIC_BASE_URL=${tools_url%/v1} ANTHROPIC_API_KEY=$token ANTHROPIC_AUTH_TOKEN=$token IS_SANDBOX=1 \
        DISABLE_TELEMETRY=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
        ANTHROPIC_SMALL_FAST_MODEL=kd/ask timeout $patience "$work/agent-programs/claude/node_modules/.bin/claude" -p "Commit $turns times." \
        --model kd/ask --allowedTools Bash --max-turns $((turns + 30)) >"$work/claude.log" 2>&1 </dev/null || true
    commits "Claude Code" "$work/claude.log"
}
turns_of_codex() {
    install codex "$codex" || { skip "Codex" "$(tail -n 1 "$work/npm-codex.log")"; return; }
    copy codex
    mkdir -p "$work/codex-home"
    KD_TOKEN=$token CODEX_HOME=$work/codex-home timeout $patience "$work/agent-programs/codex/node_modules/.bin/codex" exec --skip-git-repo-check \
        --dangerously-bypass-approvals-and-sandbox -c model=kd/ask -c model_provider=kd \
        -c "model_providers.kd={name=\"kd\", base_url=\"$tools_url\", env_key=\"KD_TOKEN\", wire_api=\"responses\"}" \
        "Commit $turns times." >"$work/codex.log" 2>&1 </dev/null || true
    commits "Codex" "$work/codex.log"
}
turns_of_opencode() {
    install opencode "$opencode" || { skip "opencode" "$(tail -n 1 "$work/npm-opencode.log")"; return; }
    copy opencode
    mkdir -p "$work/opencode-home"
    cat >"$work/opencode.json" <<END
{"model": "kd/kd/ask", "small_model": "kd/kd/ask", "autoupdate": false, "share": "disabled", "permission": {"*": "allow"},
 "provider": {"kd": {"npm": "@ai-sdk/openai-compatible", "name": "kd", "options": {"baseURL": "$tools_url", "apiKey": "$token"},
  "models": {"kd/ask": {"name": "council", "tool_call": true, "limit": {"context": 200000, "output": 8192}}}}}}
END
    # Its list of models is its own: nothing is fetched.
    HOME=$work/opencode-home XDG_CONFIG_HOME=$work/opencode-home XDG_DATA_HOME=$work/opencode-home OPENCODE_CONFIG=$work/opencode.json \
        OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_DEFAULT_PLUGINS=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 \
        timeout $patience "$work/agent-programs/opencode/node_modules/.bin/opencode" run -m kd/kd/ask "Commit $turns times." \
        >"$work/opencode.log" 2>&1 </dev/null || true
    commits "opencode" "$work/opencode.log"
}

began=$SECONDS
asked=()
for agent in claude codex opencode; do
    (set -e; "turns_of_$agent") >"$work/said-$agent" 2>&1 &
    asked+=($!)
done
broken=0
for one in "${asked[@]}"; do
    wait "$one" || broken=1
done
cat "$work"/said-{claude,codex,opencode}
skipped=$((skipped + $(cat "$work"/said-{claude,codex,opencode} | grep -c '^SKIPPED' || true)))
echo "the agents took $((SECONDS - began)) s"
[ "$broken" = 0 ] || exit 1
