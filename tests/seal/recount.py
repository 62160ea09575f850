"""Counts the ballots of a recorded deliberation again, and decides ties again.

Input: the events of a record. What is compared: which ballots count, who wins or ties, how the tie was broken, and the
winner. Not repeated: how replies were read (the record has the result), and which vendor makes a model: where a tie was
broken by the number of vendors, only the recorded step is checked for its place.
"""
import json
from fractions import Fraction

from rules import NANO, RULES, Poll, untie

PURSE = 10


class Differs(Exception):
    pass


def need(holds, what):
    if not holds:
        raise Differs(what)


def recount(events):
    """Returns how many counts were compared."""
    plan, ballots, replies, trail, compared = None, {}, {}, {}, 0
    for event in events:
        fact = event.get("fact") or {}
        kind = fact.get("fact")
        if kind == "opened":
            plan = fact["plan"]
        elif kind == "stage_began":
            ballots = {}
        elif kind == "seat_asked":
            replies[fact["seat"]] = {"labels": {l["label"]: l["item"] for l in fact.get("labels", [])}}
        elif kind == "seat_replied":
            replies.setdefault(fact["seat"], {})["text"] = fact["text"]
        elif kind == "answer_read":
            trail.setdefault(fact["seat"], {})[fact["round"]] = fact["key"]
        elif kind == "ballot_read":
            ballots[fact["seat"]] = dict(fact, reply=replies.get(fact["seat"], {}))
        elif kind == "counted":
            if fact["source"] == "ballots" and fact["rule"] in RULES:
                compare(plan, fact, ballots, trail)
                compared += 1
            ballots, trail = {}, {}
    return compared


def compare(plan, counted, ballots, trail):
    names, rule = counted["candidates"], counted["rule"]
    reads, method = RULES[rule]
    seats = {seat["member"]["name"]: seat for seat in plan["seats"]}
    votes = []
    for name, seat in seats.items():
        vote = name in ballots and read(reads, names, ballots[name], trail.get(name, {}))
        if vote:
            votes.append(vote | {
                "weight": exact(seat["member"]["weight"]),
                "right": None if seat.get("reliability") is None else exact(seat["reliability"]),
                "family": seat["member"].get("model") or seat["agent"],
            })
    need(len(votes) == counted["voters"], f"{rule}: {len(votes)} voters, recorded {counted['voters']}")
    options = plan["answers"].get("options") if isinstance(plan["answers"], dict) else None
    share = plan["voting"].get("threshold")
    share = None if share is None else exact(share)
    if share is None and plan.get("reading", 0) < 5:
        # Older records took two thirds rounded down.
        share = Fraction(666666666, NANO)
    poll = Poll(len(names), votes, len(options) if options else None, share)
    enough = votes and names and len(votes) >= counted["electorate"] // 2 + 1
    winners = sorted(method(poll)) if enough else []
    need(winners == counted["winners"], f"{rule}: {winners} win, recorded {counted['winners']}")
    decide(plan, counted, poll, reads, winners)


def decide(plan, counted, poll, reads, winners):
    """Compares how a tie was broken, and the winner."""
    names, rule = counted["candidates"], counted["rule"]
    steps = [line.split(":")[0] for line in counted["tie_path"]]
    left = [line.rsplit("; left: ", 1)[1] for line in counted["tie_path"] if line.startswith("families:")]
    vendors = any(seat["member"]["backend"] != "scripted" for seat in plan["seats"])
    recorded = [at for at, name in enumerate(names) if name in left[0].split(", ")] if left and vendors else None
    winner, taken = untie(poll, reads, winners, names, plan["seed"], plan["question"], recorded)
    if plan.get("reading", 0) == 0:
        steps = [step for step in steps if step != "families"]
        taken = [step for step in taken if step != "families"]
    need(taken == steps, f"{rule}: a tie is broken by {taken}, recorded {steps}")
    # A council may leave undecided what the rule decides, and says why.
    undecided = counted["winner"] is None and any("undecided" in note for note in counted["notes"])
    need(undecided or winner == counted["winner"], f"{rule}: {winner} wins, recorded {counted['winner']}")


def exact(number):
    return Fraction(round(number * NANO), NANO)


def read(reads, names, ballot, trail):
    """Returns a ballot as a rule reads it; None for an abstention."""
    marks = ballot["marks"]
    if not marks:
        return None
    vote = {"sure": None if ballot["confidence"] is None else exact(ballot["confidence"]), "foretold": None}
    if reads in ("points", "purse"):
        points = [Fraction(0)] * len(names)
        for mark in marks:
            name, given = mark.rsplit(": ", 1)
            points[names.index(name)] = exact(float(given))
        if reads == "purse" and sum(points) > PURSE:
            return None
        firsts = [c for c, given in enumerate(points) if given == max(points)]
        return vote | {"points": points, "alone": alone(firsts)}
    if reads == "orders":
        if len(marks) < 2 or marks[0] != marks[1] or "-" in marks:
            return None
        judged = names.index(marks[0])
        return vote | {"trail": [judged, judged], "alone": judged}
    order = [names.index(mark) for mark in marks]
    if reads == "set":
        return vote | {"set": order, "alone": alone(order)} if len(order) <= (len(names) + 1) // 2 else None
    if reads == "tiers":
        return vote | {"tiers": [[c] for c in order], "alone": order[0]}
    if reads == "trail":
        rounds = [trail[at] for at in sorted(trail)]
        earlier = [names.index(key) if key in names else None for key in rounds]
        return vote | {"trail": earlier + order[:1], "alone": order[0]}
    return vote | {"first": order[0], "alone": order[0], "foretold": foretold(names, ballot["reply"])}


def alone(firsts):
    return firsts[0] if len(firsts) == 1 else None


def foretold(names, reply):
    """The shares of the votes that a ballot predicts, if it names every label."""
    try:
        said = json.loads(reply["text"])["forecast"]
        given = {reply["labels"][label]: min(max(float(said[label]), 0.0), 100.0) for label in reply["labels"]}
        shares = [given.get(name, 0.0) for name in names]
    except (KeyError, TypeError, ValueError):
        return None
    total = sum(shares)
    return [exact(share / total) for share in shares] if total > 0 else None
