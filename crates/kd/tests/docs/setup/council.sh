member ada '[[{"sleep_ms": 3000}, {"text": "Start with **SQLite**: one file, nothing to run."}]]'
member bob '[[{"sleep_ms": 2500}, {"fail": {"kind": "auth", "message": "the key is wrong"}}]]'
configure '"council": {"members": ["ada", "bob"], "conclude": false}'
