cat > said.jsonl <<'EOF'
{"type":"thread.started","thread_id":"t1"}
{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"Hello."}}
{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":0,"output_tokens":4}}
EOF
