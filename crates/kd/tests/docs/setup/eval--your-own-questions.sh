. "$ROOT/crates/kd/tests/docs/setup/eval.sh"
printf 'id,question,gold\nq1,What is 17*23?,391\n' > questions.csv
