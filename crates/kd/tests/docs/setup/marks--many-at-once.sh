for name in ann bob cyd; do
  says "$name" '{\"answer\": 391, \"confidence\": 0.9}'
done
configure '"council": {"members": ["ann", "bob", "cyd"], "conclude": false}'
for n in 1 2; do
  echo "{\"id\": \"q$n\", \"question\": \"What is 17*23? ($n)\", \"answer\": \"number\"}"
done > questions.jsonl
kd batch run questions.jsonl -o results.jsonl --as deliberate
printf 'id,gold\nq1,391\nq2,no\n' > answers.csv
