mkdir .kd
echo '{"version": 2}' > .kd/memory.json
