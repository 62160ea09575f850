printf '%9120s' '' | tr ' ' x > thesis.md
kd forum post Bees "Why do they dance?" --forum main
kd forum post Bees "Why do they dance?" --forum research
