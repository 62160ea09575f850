#!/usr/bin/env python3
"""Checks the record of a forum without kd: commitments, seeds, orders, posts, seals, and the figures of its fairness.

    python3 tests/forum/audit.py .kd/forum.db [forum]
    kd forum export forum.jsonl && python3 tests/forum/audit.py forum.jsonl

Needs the standard library alone. Prints one JSON object; exits with 1 if something does not fit.
"""

import datetime
import hashlib
import json
import math
import sqlite3
import struct
import sys

# Hashes -------------------------------------------------------------------------------------------------------------


class Fields:
    """Feeds fields to SHA-256, each with its length in front."""

    def __init__(self, name):
        self.sha = hashlib.sha256()
        self.text(name)

    def raw(self, data):
        self.sha.update(struct.pack(">Q", len(data)) + data)
        return self

    def text(self, text):
        return self.raw(text.encode())

    def int(self, number):
        return self.text(str(int(number)))

    def real(self, number):
        return self.text(f"{float(number):.9f}")

    def maybe(self, value, put):
        self.int(0 if value is None else 1)
        if value is not None:
            put(value)
        return self

    def list(self, items, put):
        self.int(len(items))
        for item in items:
            put(item)
        return self

    def hex(self):
        return self.sha.hexdigest()


def commitment(link, secret):
    return Fields("kd forum commitment 1").text(link["chain"]).int(link["number"]).raw(secret).hex()


def mixed_seed(link, secret):
    fields = Fields("kd forum seed 1").text(link["chain"]).int(link["number"]).raw(secret)
    return bytes.fromhex(fields.text(link["previous"]).text(link["posts"]).hex())


def post_digest(post):
    if post["changed"] and post["kept"] and post["kept"] == post["kept"].lower():
        return bytes.fromhex(post["kept"])
    fields = Fields("kd forum post 1").text(post["author"]).text(post["body"]).int(post["us"])
    fields.int(post["thread_us"]).text(post["opener"]).maybe(post["quote_us"], fields.int)
    return bytes.fromhex(fields.hex())


def posts_digest(posts, link):
    digests = [post_digest(p) for p in posts if link["after_post"] < p["id"] <= link["through_post"]]
    fields = Fields("kd forum posts 1")
    return fields.list(digests, fields.raw).hex()


def seal(cycle, runs, about):
    link, cards, plan = cycle["link"], cycle["cards"], cycle["plan"]
    f = Fields("kd forum seal 1").text(link["chain"]).int(link["number"]).text(link["origin"])
    f.maybe(link.get("commitment"), f.text).text(link["posts"]).text(link["previous"]).text(link["next"])
    for name in ("secret", "void", "renewed"):
        f.maybe(link.get(name), f.text)
    f.maybe(cards.get("seed") if isinstance(cards.get("seed"), int) else None, f.int)
    f.int(cards["index"]).text(cards["scheduler"]).int(cards["skips_max"])
    f.real(cards["delays"][0]).real(cards["delays"][1])

    def candidate(one):
        f.text(one["name"]).real(one["skip_probability"]).real(one["weight"]).real(one["energy"])
        f.int(one["tokens"]).int(one["turns"]).int(one["skipped"])
        f.maybe(one.get("delays"), lambda pair: f.real(pair[0]).real(pair[1]))

    f.list(cards["candidates"], candidate)
    f.maybe(cards.get("block"), lambda b: f.list(b["first"], f.text).list(b["used"], f.int))
    f.list(plan["order"], f.text)
    f.list(plan["turns"], lambda t: f.text(t["agent"]).int(t["delay_ms"]).int(t["due"]))
    f.list(plan["sitting_out"], lambda s: f.text(s["agent"]).real(s["chance"])).int(plan["redrawn"])
    f.int(cycle["started_us"]).int(cycle["ended_us"] or 0).int(cycle["interval_ms"] or 0)

    def run(one):
        f.text(one["agent"]).int(one["started_us"]).maybe(one["ended_us"], f.int).text(one["outcome"])
        f.list(one["deeds"], lambda deed: f.text(deed["tool"]).text(about(deed)))
        f.maybe(one["reason"], f.text).maybe(one["claim"], f.text).maybe(one["claim_agrees"], f.int)
        f.int(one["calls"]).int(one["tokens"])

    return f.list(runs, run).hex()


# Draws --------------------------------------------------------------------------------------------------------------

M32, M64 = 2**32 - 1, 2**64 - 1


class ChaCha12:
    """The generator of the draws: 12 rounds, a counter and a stream of 64 bits each."""

    def __init__(self, key, stream=0):
        self.key, self.stream, self.block, self.words = struct.unpack("<8I", key), stream, 0, []

    def refill(self):
        state = list(struct.unpack("<4I", b"expand 32-byte k")) + list(self.key)
        state += [self.block & M32, self.block >> 32, self.stream & M32, self.stream >> 32]
        w = state[:]

        def quarter(a, b, c, d):
            for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                w[x] = (w[x] + w[y]) & M32
                v = w[z] ^ w[x]
                w[z] = ((v << turn) | (v >> (32 - turn))) & M32

        for _ in range(6):
            for i in range(4):
                quarter(i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        self.words = [(a + b) & M32 for a, b in zip(w, state)]
        self.block += 1

    def u32(self):
        if not self.words:
            self.refill()
        return self.words.pop(0)

    def u64(self):
        low = self.u32()
        return low | self.u32() << 32

    def below(self, bound):
        """Canon's method with one more word."""
        product = self.u32() * bound
        high, low = product >> 32, product & M32
        if low > (-bound & M32) and low + (self.u32() * bound >> 32) > M32:
            high += 1
        return high

    def between(self, low, high):
        return (self.u64() >> 12) * 2.0**-52 * (high - low) + low

    def happens(self, probability):
        return probability == 1.0 or self.u64() < int(probability * 2.0**64)

    def shuffle(self, items):
        chunk, left = 0, 1
        for i in range(len(items)):
            if left == 0:
                bound, left, factor = i + 1, 1, i + 2
                while bound * factor <= M32:
                    bound, factor, left = bound * factor, factor + 1, left + 1
                chunk = self.below(bound)
            left -= 1
            at = chunk if left == 0 else chunk % (i + 1)
            chunk //= i + 1
            items[i], items[at] = items[at], items[i]
        return items


def of_number(seed, stream):
    key, state = b"", seed
    for _ in range(8):
        state = (state * 6364136223846793005 + 11634580027462260723) & M64
        word = (((state >> 18) ^ state) >> 27) & M32
        turn = state >> 59
        key += struct.pack("<I", ((word >> turn) | (word << (-turn & 31))) & M32)
    return ChaCha12(key, stream)


def square_row(n, row):
    cells = [((i + 1) // 2 if i % 2 else (n - i // 2) % n) for i in range(n)]
    cells = [(cell + row) % n for cell in cells]
    return cells[::-1] if row >= n else cells


def williams(cards, luck, names):
    n = len(names)
    if n < 2:
        return list(range(n))
    length = n if n % 2 == 0 else 2 * n
    if isinstance(cards["seed"], int):
        block, row = divmod(cards["index"], length)
        shared = of_number(cards["seed"], M64 - block)
        label, rows = shared.shuffle(list(range(n))), shared.shuffle(list(range(length)))
        return [label[cell] for cell in square_row(n, rows[row])]
    block = cards.get("block")
    left = [r for r in range(1, length) if r not in block["used"]] if block else []
    if not left:
        return luck.shuffle(list(range(n)))
    row, label = left[luck.below(len(left))], [0] * n
    for place, cell in enumerate(square_row(n, 0)):
        label[cell] = names.index(block["first"][place])
    return [label[cell] for cell in square_row(n, row)]


def skip_of(cards, one):
    base, everybody = one["skip_probability"], cards["candidates"]
    if cards["scheduler"] == "weighted":
        return base ** max(one["weight"], 1e-9)
    if cards["scheduler"] == "energy":
        return base + (1.0 - base) * (1.0 - min(max(one["energy"], 0.0), 1.0))
    turns = sum(c["turns"] for c in everybody)
    if cards["scheduler"] == "deficit" and turns:
        turn = sum(c["tokens"] for c in everybody) / turns
        most = max(c["tokens"] for c in everybody)
        used = sum(max(c["tokens"], most - 6.0 * turn) for c in everybody)
        if one["tokens"] > used / len(everybody) + 2.0 * turn:
            return 1.0
    return base


def draw(cards, seed):
    """The plan of a cycle: order, turns with their delays, and who sits out."""
    everybody = cards["candidates"]
    names, n = [c["name"] for c in everybody], len(everybody)
    number = isinstance(seed, int)
    luck = of_number(seed, cards["index"]) if number else ChaCha12(seed)
    cards = {**cards, "seed": seed}
    rule = cards["scheduler"]
    if rule == "fixed":
        order = list(range(n))
    elif rule == "rotate":
        order = [(cards["index"] + i) % n for i in range(n)]
    elif rule == "williams":
        order = williams(cards, luck, names)
    elif rule == "weighted":
        keys = [(-math.log(luck.between(sys.float_info.min, 1.0)) / max(c["weight"], 1e-9), i) for i, c in enumerate(everybody)]
        order = [i for _, i in sorted(keys)]
    else:
        order = luck.shuffle(list(range(n)))
    chances = [min(max(skip_of(cards, c), 0.0), 1.0) for c in everybody]
    due = [c["skipped"] >= cards["skips_max"] for c in everybody]
    redrawn = 0
    while True:
        drawn = [(luck.happens(chances[i]), due[i]) for i in order]
        out = [sits and not is_due for sits, is_due in drawn]
        if not all(out) or not out or redrawn == 32:
            break
        redrawn += 1
    if out and all(out):
        out[luck.below(len(out))] = False
    turns, sitting_out = [], []
    for place, i in enumerate(order):
        if out[place]:
            sitting_out.append(names[i])
            continue
        least, most = everybody[i].get("delays") or cards["delays"]
        delay = luck.between(least, most) if most > least else least
        ms = 0 if not turns else math.floor(max(delay, 0.0) * 1000.0 + 0.5)
        turns.append((names[i], ms))
    return [names[i] for i in order], turns, sitting_out


# Fairness -----------------------------------------------------------------------------------------------------------


def due_of(cards):
    """What each candidate was entitled to: mean and variance of its place, and how likely it took a turn, the first and
    the last one."""
    everybody = cards["candidates"]
    n = len(everybody)
    weighs = cards["scheduler"] == "weighted"
    w = [max(c["weight"], 1e-9) if weighs else 1.0 for c in everybody]
    take = [1.0 if c["skipped"] >= cards["skips_max"] else 1.0 - min(max(skip_of(cards, c), 0.0), 1.0) for c in everybody]
    nobody = math.prod(1.0 - t for t in take)
    lot = nobody**33
    first, last, steps = [0.0] * n, [0.0] * n, 200
    alike = len(set(w)) == 1
    if alike:
        # Simpson's rule on the share of the others that is behind.
        for k in range(steps + 1):
            x = k / steps
            weight = (1 if k in (0, steps) else 4 if k % 2 else 2) / (3 * steps)
            for i in range(n):
                others = [take[j] for j in range(n) if j != i]
                first[i] += weight * take[i] * math.prod(1.0 - t * x for t in others)
        last = first
    rows = []
    for i in range(n):
        before = [w[j] / (w[i] + w[j]) for j in range(n) if j != i]
        mean = 1.0 + sum(before)
        square = sum(before)
        for j in range(n):
            for k in range(n):
                if i not in (j, k) and j != k:
                    square += w[j] / (w[i] + w[j]) + w[k] / (w[i] + w[k]) - 1.0 + w[i] / (w[i] + w[j] + w[k])
        given = lambda p: min(1.0, (1.0 - lot) * p / (1.0 - nobody) + lot / n) if nobody < 1.0 else 1.0 / n
        rows.append({
            "place": mean, "variance": square - (mean - 1.0) ** 2, "turn": given(take[i]),
            "first": given(first[i]), "last": given(last[i]),
        })
    return rows, alike


def binomial_two_sided(hits, trials):
    """`trials` are probabilities with their counts."""
    n = sum(trials.values())
    if n == 0:
        return None
    p = sum(q * count for q, count in trials.items()) / n
    logs = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p) for k in range(n + 1)]
    below = math.fsum(math.exp(v) for v in logs[: hits + 1])
    above = math.fsum(math.exp(v) for v in logs[hits:])
    return min(1.0, 2.0 * min(below, above))


class Trials:
    def __init__(self):
        self.hits, self.at = 0, {}

    def add(self, probability, hit):
        p = round(probability, 6)
        if 0.0 < p < 1.0:
            self.at[p] = self.at.get(p, 0) + 1
            self.hits += bool(hit)


def fairness(cycles, runs_of):
    agents, pairs, cells, known = {}, {}, {}, {}
    for cycle in cycles:
        cards, order = cycle["cards"], cycle["plan"]["order"]
        if not order:
            continue
        key = json.dumps([cards["scheduler"], cards["skips_max"], cards["candidates"]], sort_keys=True)
        if key not in known:
            known[key] = due_of(cards)
        dues, alike = known[key]
        n = len(order)
        whole = cycle["ended_us"] is not None and not (cycle["link"] or {}).get("void")
        took = [run["agent"] for run in runs_of(cycle["id"])]
        for candidate, due in zip(cards["candidates"], dues):
            name = candidate["name"]
            a = agents.setdefault(name, {
                "cycles": 0, "places": 0, "off": 0.0, "variance": 0.0, "turns": 0, "turns_entitled": 0.0, "first": 0, "last": 0,
                "trials": {k: Trials() for k in ("turns", "first_words", "last_words")},
            })
            place = order.index(name) + 1
            a["cycles"] += 1
            a["places"] += place
            a["off"] += place - due["place"]
            a["variance"] += due["variance"]
            if alike:
                for other in order:
                    if other != name:
                        pairs.setdefault((other, name), Trials()).add(1.0 / n, False)
                for at in range(n):
                    cells.setdefault((name, at), Trials()).add(1.0 / n, False)
                cells[name, place - 1].hits += 1 if n > 1 else 0
                if place > 1:
                    pairs[order[place - 2], name].hits += 1
            if whole:
                a["turns"] += name in took
                a["turns_entitled"] += due["turn"]
                a["trials"]["turns"].add(due["turn"], name in took)
                a["trials"]["first_words"].add(due["first"], took[:1] == [name])
                a["trials"]["last_words"].add(due["last"], took[-1:] == [name])
    rows = {}

    def row(key, values):
        values = [v for v in values if v is not None]
        if values:
            rows[key] = min(1.0, min(values) * len(values))

    def place_p(a):
        if a["variance"] <= 0.0:
            return None
        return math.erfc(max(abs(a["off"]) - 0.5, 0.0) / math.sqrt(a["variance"]) / math.sqrt(2.0))

    row("mean_place", [place_p(a) for a in agents.values()])
    row("neighbors", [binomial_two_sided(t.hits, t.at) for t in pairs.values()])
    row("places", [binomial_two_sided(t.hits, t.at) for t in cells.values()])
    for key in ("turns", "first_words", "last_words"):
        row(key, [binomial_two_sided(a["trials"][key].hits, a["trials"][key].at) for a in agents.values()])
    shown = [{
        "agent": name, "cycles": a["cycles"], "turns": a["turns"], "turns_entitled": a["turns_entitled"],
        "place": a["places"] / a["cycles"], "place_entitled": (a["places"] - a["off"]) / a["cycles"],
    } for name, a in sorted(agents.items())]
    return {"agents": shown, "p": rows}


# The record ---------------------------------------------------------------------------------------------------------

LINK = "chain number origin commitment after_post through_post posts previous next secret void renewed seal".split()


# The links at the end of the chain whose cycles are gone. An export has no such links.
CUT_OFF = []


def read_database(path, forum):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    cycles = []
    columns = ", ".join("l." + name for name in LINK)
    for row in db.execute(
        f"SELECT c.id, c.number, c.cards, c.plan, c.started_at, c.ended_at, c.interval_ms, {columns} FROM cycles c "
        "LEFT JOIN links l ON l.cycle_id = c.id WHERE c.forum = ? AND c.number > 0 ORDER BY c.number", (forum,)
    ):
        link = dict(zip(LINK, row[7:])) if row[7] else None
        cycles.append({
            "id": row[0], "number": row[1], "cards": json.loads(row[2]), "plan": json.loads(row[3]), "started_us": row[4],
            "ended_us": row[5], "interval_ms": row[6], "link": link,
        })
    runs = [dict(zip(("id", "cycle_id", "agent", "started_us", "ended_us", "outcome", "deeds", "reason", "claim", "claim_agrees", "calls", "tokens"), row))
            for row in db.execute("SELECT id, cycle_id, agent, started_at, ended_at, outcome, deeds, reason, claim, claim_agrees, calls, tokens "
                                  "FROM runs WHERE forum = ? ORDER BY id", (forum,))]
    for run in runs:
        run["deeds"] = json.loads(run["deeds"])
    posts = [dict(zip(("id", "thread_id", "author", "body", "us", "thread_us", "opener", "quote_us", "kept", "changed"), row)) for row in db.execute(
        "SELECT p.id, p.thread_id, p.author, p.body, p.created_at, t.created_at, t.author, q.created_at, f.digest, "
        "p.edited_at IS NOT NULL OR p.deleted_at IS NOT NULL FROM posts p JOIN threads t ON t.id = p.thread_id "
        "LEFT JOIN posts q ON q.id = p.quote_post_id LEFT JOIN first_words f ON f.post_id = p.id WHERE t.forum = ? ORDER BY p.id", (forum,))]
    motions = dict(db.execute("SELECT id, title FROM motions"))
    # Older stores have no such table.
    known = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'erasures'").fetchone()
    erased = set(db.execute("SELECT what, item FROM erasures WHERE forum = ?", (forum,))) if known else set()
    cut_off = db.execute("SELECT l.number FROM chains h JOIN links l ON l.chain = h.chain WHERE h.forum = ? AND l.cycle_id NOT IN (SELECT id FROM cycles) "
                         "AND l.number > ifnull((SELECT max(o.number) FROM links o JOIN cycles c ON c.id = o.cycle_id WHERE o.chain = l.chain), 0)", (forum,))
    CUT_OFF.extend(row[0] for row in cut_off)
    return cycles, runs, posts, motions, erased


def micros(text):
    if text is None:
        return None
    at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    since = at - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def read_export(path, forum):
    threads, posts, kept, cycles, runs, motions, erased = {}, [], {}, [], [], {}, set()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            kind = record["record"]
            if kind == "thread" and record["forum"] == forum:
                threads[record["id"]] = record
            elif kind == "post" and record["thread_id"] in threads:
                posts.append(record)
            elif kind == "first_words":
                kept[record["post_id"]] = record["digest"]
            elif kind == "cycle" and record["forum"] == forum and record["number"] > 0:
                cycles.append({**record, "started_us": micros(record["started_at"]), "ended_us": micros(record["ended_at"]), "link": record.get("link")})
            elif kind == "run" and record["forum"] == forum:
                runs.append({**record, "started_us": micros(record["started_at"]), "ended_us": micros(record["ended_at"])})
            elif kind == "motion":
                motions[record["id"]] = record["title"]
            elif kind == "erasure" and record["forum"] == forum:
                erased.add((record["what"], record["item"]))
    times = {post["id"]: micros(post["created_at"]) for post in posts}
    facts = [{
        "id": p["id"], "thread_id": p["thread_id"], "author": p["author"], "body": p["body"], "us": times[p["id"]], "thread_us": micros(threads[p["thread_id"]]["created_at"]),
        "opener": threads[p["thread_id"]]["author"], "quote_us": times.get(p.get("quote_post_id")), "kept": kept.get(p["id"]),
        "changed": bool(p.get("edited_at") or p.get("deleted_at")),
    } for p in posts]
    return sorted(cycles, key=lambda c: c["number"]), runs, facts, motions, erased


CARDS = {"seed", "index", "scheduler", "skips_max", "delays", "candidates", "block"}
CANDIDATE = {"name", "skip_probability", "weight", "energy", "tokens", "turns", "skipped", "delays"}
DEED = {"tool", "thread_id", "post_id", "motion_id"}


def is_written_by_kd(cards, plan, deeds):
    """No unknown field, and no decimal beyond those that the seal covers."""
    def plain(number):
        return abs(number) >= 4e6 or round(number, 9) == number

    one = [set(c) <= CANDIDATE and all(plain(c[key]) for key in ("skip_probability", "weight", "energy")) for c in cards["candidates"]]
    delays = [cards["delays"], *(c["delays"] for c in cards["candidates"] if c.get("delays"))]
    out = [plain(one["chance"]) for one in plan["sitting_out"]]
    return "seed" in cards and set(cards) <= CARDS and all(one + out) and all(plain(d) for pair in delays for d in pair) and all(set(d) <= DEED for d in deeds)


def audit(cycles, runs, posts, motions, erased):
    faults, last, forks, shortened = [], {}, [], []
    by_cycle = {}
    for run in runs:
        by_cycle.setdefault(run["cycle_id"], []).append(run)
    digests = {post["id"]: post for post in posts}

    def about(deed):
        if deed.get("post_id") is not None:
            post = digests.get(deed["post_id"])
            return post_digest(post).hex() if post else ""
        return motions.get(deed.get("motion_id"), "")

    def is_shortened(cycle):
        """Whether a text that the seal covers is said to be erased: then nothing proves the turns of the cycle."""
        ran, gone = by_cycle.get(cycle["id"], []), "[forgotten]"
        items = {("cycle", cycle["id"])} if cycle["link"].get("void") == gone else set()
        items |= {("run", run["id"]) for run in ran if gone in (run.get("reason"), run.get("claim"))}
        made = {deed.get("motion_id") for run in ran for deed in run["deeds"]}
        items |= {("motion", motion) for motion in made if motions.get(motion) == gone}
        return bool(items & erased)

    for cycle in cycles:
        def fault(what):
            faults.append([cycle["number"], what])

        link, seed = cycle["link"], cycle["cards"].get("seed")
        if link:
            before, forked = last.get(link["chain"]), link["origin"] == "forked"
            if forked:
                forks.append([cycle["number"], link["void"]])
            if not before and link["number"] != 1 and not forked:
                fault("the link before it is missing")
            if before:
                follows = link["number"] > before["number"] if forked else link["number"] == before["number"] + 1
                if link["previous"] != before["seal"] or not follows:
                    fault("it does not follow the link before")
                if link["after_post"] != before["through_post"]:
                    fault("its posts do not begin where those of the link before end")
                pending = before.get("renewed") or before["next"]
                if link.get("commitment") not in (None, pending):
                    fault("its commitment is another")
            last[link["chain"]] = link
            if link.get("secret"):
                secret = bytes.fromhex(link["secret"])
                if commitment(link, secret) != link["commitment"]:
                    fault("its secret does not fulfil its commitment")
                seed = mixed_seed(link, secret)
            if not is_written_by_kd(cycle["cards"], cycle["plan"], [deed for run in by_cycle.get(cycle["id"], []) for deed in run["deeds"]]):
                fault("it is not written as kd writes it")
            if posts_digest(posts, link) != link["posts"]:
                fault("its posts were changed")
            if cycle["ended_us"] is not None and seal(cycle, by_cycle.get(cycle["id"], []), about) != link["seal"]:
                if is_shortened(cycle):
                    shortened.append(cycle["number"])
                else:
                    fault("its record does not fit its seal")
        elif seed is None:
            fault("its link is gone")
        elif last:
            fault("it has no link, and a cycle before it has one")
        for run in by_cycle.get(cycle["id"], []):
            for deed in run["deeds"]:
                post = digests.get(deed.get("post_id"), {})
                if post and (post["thread_id"], post["author"]) != (deed.get("thread_id"), run["agent"]):
                    fault(f"post {post['id']} is not where {run['agent']} wrote it")
        planned, took = [t["agent"] for t in cycle["plan"]["turns"]], [run["agent"] for run in by_cycle.get(cycle["id"], [])]
        whole = cycle["ended_us"] is not None and not (link or {}).get("void")
        # The order of a running cycle is not recorded yet, and that of a void one may never be.
        if not planned and not isinstance(seed, (int, bytes)):
            strangers = set(took) - {one["name"] for one in cycle["cards"]["candidates"]}
            if strangers:
                fault(f"{', '.join(sorted(strangers))} ran and could not be drawn")
        elif took != planned[: len(took)] or (whole and took != planned):
            fault(f"planned were {', '.join(planned)}, and {', '.join(took)} ran")
        if isinstance(seed, (int, bytes)):
            order, turns, out = draw(cycle["cards"], seed)
            plan = cycle["plan"]
            recorded = (plan["order"], [(t["agent"], t["delay_ms"]) for t in plan["turns"]], [s["agent"] for s in plan["sitting_out"]])
            if (order, turns, out) != recorded:
                fault("drawn again it is another")
    for number in CUT_OFF:
        faults.append([cycles[-1]["number"] if cycles else 0, f"the cycle of link {number} is gone"])
    return faults, forks, shortened, (lambda cycle: by_cycle.get(cycle, []))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    path, forum = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "main"
    with open(path, "rb") as file:
        database = file.read(16) == b"SQLite format 3\0"
    record = (read_database if database else read_export)(path, forum)
    faults, forks, shortened, runs_of = audit(*record)
    print(json.dumps({"cycles": len(record[0]), "faults": faults, "forks": forks, "not_proved": shortened, **fairness(record[0], runs_of)}))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
