. "$ROOT/crates/kd/tests/docs/setup/any.sh"
echo '{"gpt-x": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}' > list.json
