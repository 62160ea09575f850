member ann '[[{"sleep_ms": 300}, {"text": "Spaces, as the standard says."}]]'
says bob "Tabs."
configure '"council": {"members": ["ann", "bob"], "conclude": false}'
kd ask "Tabs or spaces?"
