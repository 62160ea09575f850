#!/usr/bin/env bash
# A council in a script: the question and a diff go in, one JSON object comes out, the exit code says how whole it is.
set -u
answer=$(git diff "${1:-HEAD~1}" | kd ask --json --quiet "Is this change safe to release? Begin with YES or NO.")
case $? in
  0) ;;
  5) echo "some members failed; reading what the others said" >&2 ;;
  *) echo "no council today" >&2; exit 1 ;;
esac
printf '%s\n' "$answer" | python3 -c '
import json, sys
council = json.load(sys.stdin)
votes = [a["text"].lstrip().upper().startswith("YES") for a in council["answers"] if a["status"] == "complete"]
print(f"{sum(votes)} of {len(votes)} say yes; thread {council['"'"'thread_id'"'"']}")
sys.exit(0 if sum(votes) * 2 > len(votes) else 1)'
