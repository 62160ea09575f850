folder=crates/kd-eval/tests/data/replay
mkdir -p "$folder"
cp "$ROOT/$folder"/*.csv "$ROOT/$folder"/*.jsonl "$folder"
cp "$folder"/* "$ROOT"/crates/kd-records/tests/data/inspect/* .
cp "$ROOT"/crates/kd-records/tests/data/lm-eval/ada/samples_sums_*.jsonl samples_sums_1.jsonl
cp "$ROOT"/crates/kd-records/tests/data/lm-eval/bob/samples_sums_*.jsonl samples_sums_2.jsonl
for name in ann bob cyd; do
  says "$name" '{\"answer\": 391, \"confidence\": 0.9}'
done
configure '"council": {"members": ["ann", "bob", "cyd"], "conclude": false}'
# Five members.
awk 'BEGIN {
  print "id,gold,ada,bob,cyd,dan,eve"
  for (n = 1; n <= 600; n++) print "q" n ",A,A," (n % 3 ? "A" : "B") ",A," (n % 5 ? "A" : "B") "," (n % 7 ? "A" : "B")
}' > answers.csv
echo '{"id": "q1", "question": "What is 17*23?", "answer": "number"}' > asked.jsonl
kd batch run asked.jsonl -o results.jsonl --as deliberate
printf 'id,gold\nq1,391\n' > gold.csv
