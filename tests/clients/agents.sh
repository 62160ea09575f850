# Part of `run`: Claude Code, Codex and opencode with their real tools, each 50 turns in a working copy of its own.
# Uses $work, $here, $tools_url, $token, $claude_code, $codex, $opencode and skip.

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
    local n
    n=$( (git log --oneline 2>/dev/null || true) | wc -l)
    [ "$n" = 45 ] || { echo "FAILED  $1: $n commits of 45"; tail -n 20 "$2"; exit 1; }
    echo "passed  $1: 50 turns with its own tools in a working copy"
}

agents=$work/agent-programs
if npm install --silent --no-audit --no-fund --prefix "$agents" "$claude_code" >"$work/npm.log" 2>&1; then
    copy claude
    mkdir -p "$work/claude-home"
    HOME=$work/claude-home ANTHROPIC_BASE_URL=${tools_url%/v1} ANTHROPIC_API_KEY=$token ANTHROPIC_AUTH_TOKEN=$token IS_SANDBOX=1 \
        DISABLE_TELEMETRY=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
        ANTHROPIC_SMALL_FAST_MODEL=kd/ask timeout 600 "$agents/node_modules/.bin/claude" -p "Commit fifty times." --model kd/ask \
        --allowedTools Bash --max-turns 80 >"$work/claude.log" 2>&1 </dev/null || true
    commits "Claude Code" "$work/claude.log"
else
    skip "Claude Code" "$(tail -n 1 "$work/npm.log")"
fi
if npm install --silent --no-audit --no-fund --prefix "$agents" "$codex" >"$work/npm.log" 2>&1; then
    copy codex
    mkdir -p "$work/codex-home"
    KD_TOKEN=$token CODEX_HOME=$work/codex-home timeout 600 "$agents/node_modules/.bin/codex" exec --skip-git-repo-check \
        --dangerously-bypass-approvals-and-sandbox -c model=kd/ask -c model_provider=kd \
        -c "model_providers.kd={name=\"kd\", base_url=\"$tools_url\", env_key=\"KD_TOKEN\", wire_api=\"responses\"}" \
        "Commit fifty times." >"$work/codex.log" 2>&1 </dev/null || true
    commits "Codex" "$work/codex.log"
else
    skip "Codex" "$(tail -n 1 "$work/npm.log")"
fi
if npm install --silent --no-audit --no-fund --prefix "$agents" "$opencode" >"$work/npm.log" 2>&1; then
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
        timeout 600 "$agents/node_modules/.bin/opencode" run -m kd/kd/ask "Commit fifty times." \
        >"$work/opencode.log" 2>&1 </dev/null || true
    commits "opencode" "$work/opencode.log"
else
    skip "opencode" "$(tail -n 1 "$work/npm.log")"
fi
