says ada "2027 is prime."
configure '"council": {"members": ["ada"]}'
echo '{"id": "q1", "question": "Which is the larger planet, Mars or Venus?"}' > questions.jsonl
echo '{"id": "q2", "question": "Is 2027 a prime number?"}' >> questions.jsonl
