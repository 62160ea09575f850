echo '{"ranking": ["a", "b"]}' > ballots.jsonl
echo '{"candidates": 3, "ballots": [[2,0,1],[0,2,1]], "winners": {"plurality": [0,2]}}' > elections.jsonl
