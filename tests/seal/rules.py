"""Voting rules, written from their definitions in docs/voting.md, for small numbers of candidates.

Exact: whole numbers and fractions, except where the definition says otherwise. Where a rule can be written in several
ways, the plainest was taken: all orders, all subsets, all chains.

A ballot is a dict: `first` (a candidate), `tiers` (a ranking: lists of candidates, best first), `points` (one Fraction
for each candidate), `set`, `trail` (a candidate or None for each round), `sure`, `weight`, `right` (how often its voter
is right, or None), `foretold` (a share for each candidate, or None). Each rule reads one of the forms, named in `RULES`.
"""
import hashlib
import math
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations

NANO = 10**9


def nano(x):
    """A float as billionths, as the definition of log-odds rounds it."""
    return Fraction(round(x * NANO), NANO)


def best(among, value):
    values = {c: value(c) for c in among}
    top = max(values.values()) if values else None
    return [c for c in among if values[c] == top]


def least(among, value):
    return best(among, lambda c: -value(c))


class Poll:
    def __init__(self, n, ballots, options=None, threshold=None):
        self.n, self.ballots, self.all = n, ballots, list(range(n))
        self.options, self.threshold = options or n, threshold

    # Rankings.

    def tiers(self, among=None):
        """Rankings among some candidates; what a ranking does not name is tied at its end."""
        among = self.all if among is None else among
        for ballot in self.ballots:
            tiers = [[c for c in tier if c in among] for tier in ballot["tiers"]]
            named = {c for tier in tiers for c in tier}
            tiers = [tier for tier in tiers if tier]
            rest = [c for c in among if c not in named]
            yield tiers, rest

    def prefer(self, a, b):
        """How many rank a above b."""
        count = 0
        for ballot in self.ballots:
            place = {c: at for at, tier in enumerate(ballot["tiers"]) for c in tier}
            count += place.get(a, self.n) < place.get(b, self.n)
        return count

    def margin(self, a, b):
        return self.prefer(a, b) - self.prefer(b, a)

    def beats(self, a, b):
        return self.margin(a, b) > 0

    def firsts(self, among):
        """Shares of first places; a ballot that names none of them counts for nobody."""
        count = dict.fromkeys(among, Fraction(0))
        for tiers, _ in self.tiers(among):
            for c in tiers[0] if tiers else []:
                count[c] += Fraction(1, len(tiers[0]))
        return count

    def lasts(self, among):
        count = dict.fromkeys(among, Fraction(0))
        for tiers, rest in self.tiers(among):
            last = rest or tiers[-1]
            for c in last:
                count[c] += Fraction(1, len(last))
        return count

    def borda(self, among):
        """One point for each candidate ranked below, half of one for each that is tied."""
        count = dict.fromkeys(among, Fraction(0))
        for tiers, rest in self.tiers(among):
            groups = tiers + ([rest] if rest else [])
            below = len(among)
            for group in groups:
                below -= len(group)
                for c in group:
                    count[c] += below + Fraction(len(group) - 1, 2)
        return count

    def places(self, value, blank):
        """Sums of `value(place)`, where tied ones share the average of their places."""
        count = [Fraction(0)] * self.n
        for tiers, rest in self.tiers():
            place = 1
            for tier in tiers:
                share = sum((value(place + k) for k in range(len(tier))), Fraction(0)) / len(tier)
                for c in tier:
                    count[c] += share
                place += len(tier)
            for c in rest:
                count[c] += blank
        return count

    def condorcet(self, among=None):
        among = self.all if among is None else among
        return [c for c in among if all(self.beats(c, d) for d in among if d != c)]

    def smith(self, among=None):
        among = self.all if among is None else among
        for size in range(1, len(among) + 1):
            for some in combinations(among, size):
                if all(self.beats(c, d) for c in some for d in among if d not in some):
                    return list(some)
        return []

    def schwartz(self):
        closed = []
        for size in range(1, self.n + 1):
            for some in combinations(self.all, size):
                unbeaten = not any(self.beats(d, c) for c in some for d in self.all if d not in some)
                if unbeaten and not any(set(known) <= set(some) for known in closed):
                    closed.append(some)
        return sorted({c for some in closed for c in some})

    # Choices.

    def votes(self, weigh=lambda ballot: 1):
        count = [Fraction(0)] * self.n
        for ballot in self.ballots:
            count[ballot["first"]] += weigh(ballot)
        return count


def most(count, among):
    return best(among, lambda c: count[c])


def plurality(p):
    return most(p.votes(), p.all)


def over(p, share):
    count = p.votes()
    return [c for c in p.all if count[c] > share * len(p.ballots)]


def unanimity(p):
    return [c for c in p.all if p.votes()[c] == len(p.ballots)]


def weighted(p):
    return most(p.votes(lambda b: b["weight"]), p.all)


def confidence(p):
    return most(p.votes(lambda b: Fraction(1, 2) if b["sure"] is None else b["sure"]), p.all)


def odds(p, ballot):
    right = Fraction(3, 5) if ballot["right"] is None else ballot["right"]
    right = min(max(float(right), 0.05), 0.95)
    return nano(max(math.log(right * (max(p.options, 2) - 1) / (1 - right)), 0.0))


def log_odds(p):
    return most(p.votes(lambda b: odds(p, b)), p.all)


def surprising(p):
    prophets = [b for b in p.ballots if b["foretold"]]
    if not prophets:
        return plurality(p)
    count = p.votes()

    def surprise(c):
        share = count[c] / len(p.ballots)
        guess = sum(b["foretold"][c] for b in prophets) / len(prophets)
        if not guess:
            # One vote that nobody predicted beats everything; no vote is no surprise.
            return (1, share) if share else (0, Fraction(0), share)
        return (0, share / guess, share)

    return best(p.all, surprise)


def pooled(p):
    count = [Fraction(0)] * p.n
    for ballot in p.ballots:
        for c in ballot["trail"]:
            if c is not None:
                count[c] += 1
    return most(count, p.all)


def trajectory(p):
    count = [Fraction(0)] * p.n
    for ballot in p.ballots:
        held = None
        for k, c in enumerate(ballot["trail"]):
            if c is None:
                continue
            if held is None:
                count[c] += 20
            elif held == c:
                count[c] += Fraction(20, k + 1)
            else:
                count[c] += Fraction(30, k + 1)
                count[held] -= Fraction(25, k + 1)
            held = c
    return most(count, p.all)


# Points and approvals.

def sums(p):
    return [sum((b["points"][c] for b in p.ballots), Fraction(0)) for c in p.all]


def score(p):
    return most(sums(p), p.all)


def above(p, a, b):
    return sum(1 for ballot in p.ballots if ballot["points"][a] > ballot["points"][b])


def tops(p, c):
    top = max(points for b in p.ballots for points in b["points"])
    return sum(1 for b in p.ballots if b["points"][c] == top)


def star(p):
    if p.n < 2:
        return p.all
    total = sums(p)
    leaders = most(total, p.all)
    if len(leaders) == 1:
        rest = [c for c in p.all if c not in leaders]
        seated, tied = leaders, most(total, rest)
    else:
        seated, tied = [], leaders

    def seat(tied, wanted):
        """The finalists, one by one: most victories among the tied; if too many have them, most top scores."""
        if len(tied) <= wanted or not wanted:
            return [tuple(tied[:wanted])]
        lead = best(tied, lambda c: sum(1 for d in tied if above(p, c, d) > above(p, d, c)))
        if len(lead) > wanted:
            lead = best(lead, lambda c: tops(p, c))
        return [(c, *more) for c in lead for more in seat([d for d in tied if d != c], wanted - 1)]

    winners = set()
    for some in seat(tied, 2 - len(seated)):
        pair = seated + list(some)
        a, b = pair
        winners |= set(best(pair, lambda c: (above(p, c, a + b - c), total[c], tops(p, c))))
    return sorted(winners)


def median(p):
    def grades(c):
        left, order = sorted(b["points"][c] for b in p.ballots), []
        while left:
            order.append(left.pop((len(left) - 1) // 2))
        return order

    return best(p.all, grades)


def approval(p):
    return most([sum(1 for b in p.ballots if c in b["set"]) for c in p.all], p.all)


# Positions.

def borda(p):
    return most(p.borda(p.all), p.all)


def mrr(p):
    return most(p.places(lambda place: Fraction(1, place), Fraction(0)), p.all)


def dowdall(p):
    at = [[Fraction(0)] * p.n for _ in p.all]
    for tiers, _ in p.tiers():
        place = 0
        for tier in tiers:
            for c in tier:
                for k in range(len(tier)):
                    at[c][place + k] += Fraction(1, len(tier))
            place += len(tier)
    count = []
    for c in p.all:
        total = 0.0
        for place in range(p.n):
            total += float(at[c][place]) * (1.0 / (place + 1))
        count.append(total)
    return most(count, p.all)


def anti_plurality(p):
    return least(p.all, lambda c: p.lasts(p.all)[c])


def bucklin(p):
    def place(tiers, c):
        """The place of a candidate, for which all that share it count in full."""
        at = next((at for at, tier in enumerate(tiers) if c in tier), None)
        return p.n + 1 if at is None else 1 + sum(map(len, tiers[:at]))

    for depth in range(1, p.n + 1):
        count = [sum(place(tiers, c) <= depth for tiers, _ in p.tiers()) for c in p.all]
        if max(count) * 2 > len(p.ballots):
            break
    return most(count, p.all)


# Elimination.

def eliminate(p, lowest, ends, among=None):
    """Drops all that tie for the lowest together, until it ends or all that are left tie."""
    left = p.all if among is None else among
    while True:
        found = ends(left)
        if found:
            return found
        drop = lowest(left)
        if len(drop) == len(left):
            return left
        left = [c for c in left if c not in drop]


def majority_of(p):
    def found(left):
        count = p.firsts(left)
        return [c for c in left if 2 * count[c] > sum(count.values())] or (left if len(left) == 1 else [])
    return found


def fewest_firsts(p):
    return lambda left: least(left, lambda c: p.firsts(left)[c])


def irv(p, among=None):
    return eliminate(p, fewest_firsts(p), majority_of(p), among)


def irv_parallel(p):
    @lru_cache(None)
    def winners(left):
        found = majority_of(p)(list(left))
        if found:
            return frozenset(found)
        lowest = fewest_firsts(p)(list(left))
        return frozenset().union(*(winners(tuple(c for c in left if c != drop)) for drop in lowest))

    return sorted(winners(tuple(p.all)))


def runoff(p):
    count = p.firsts(p.all)
    leaders = most(count, p.all)
    if p.n == 1:
        return p.all
    if len(leaders) == 1:
        seconds = most(count, [c for c in p.all if c not in leaders])
        pairs = [(leaders[0], c) for c in seconds]
    else:
        pairs = list(combinations(leaders, 2))
    return sorted({c for a, b in pairs for c in (a, b) if not p.beats(a + b - c, c)})


def coombs(p):
    def ends(left):
        count = p.firsts(left)
        # More than half of the ballots' first places.
        return [c for c in left if 2 * count[c] > sum(count.values())] or (left if len(left) == 1 else [])

    return eliminate(p, lambda left: best(left, lambda c: p.lasts(left)[c]), ends)


def one(left):
    return left if len(left) == 1 else []


def baldwin(p):
    return eliminate(p, lambda left: least(left, lambda c: p.borda(left)[c]), one)


def nanson(p, strict=True):
    left = p.all
    while True:
        count = p.borda(left)
        average = sum(count.values()) / len(left)
        drop = [c for c in left if (count[c] < average if strict else count[c] <= average)]
        if not drop or len(drop) == len(left) or len(left) == 1:
            return left
        left = [c for c in left if c not in drop]


# Pairs.

def condorcet(p):
    return p.condorcet() or p.all


def weak_condorcet(p):
    return [c for c in p.all if not any(p.beats(d, c) for d in p.all)] or p.all


def copeland(p, tie=Fraction(1, 2)):
    def points(c):
        others = [d for d in p.all if d != c]
        return sum((1 if p.beats(c, d) else tie if not p.beats(d, c) else 0) for d in others)
    return best(p.all, points)


def strength(p, margins):
    return p.margin if margins else p.prefer


def minimax(p, margins=False):
    by = strength(p, margins)
    return least(p.all, lambda c: max([by(d, c) for d in p.all if p.beats(d, c)], default=0))


def schulze(p, margins=False):
    by = strength(p, margins)

    def chain(a, b):
        """The strongest chain of victories from a to b, over all chains."""
        strongest = 0
        others = [c for c in p.all if c not in (a, b)]
        for size in range(len(others) + 1):
            for middle in permutations(others, size):
                path = (a, *middle, b)
                steps = list(zip(path, path[1:]))
                if all(p.beats(c, d) for c, d in steps):
                    strongest = max(strongest, min(by(c, d) for c, d in steps))
        return strongest

    return [c for c in p.all if all(chain(c, d) >= chain(d, c) for d in p.all if d != c)]


def victories(p):
    return [(a, b) for a in p.all for b in p.all if a != b and p.beats(a, b)]


def reaches(locked, a, b):
    seen, todo = {a}, [a]
    while todo:
        at = todo.pop()
        if at == b:
            return True
        new = {d for c, d in locked if c == at} - seen
        seen |= new
        todo += new
    return False


def locking(p, by, refuses):
    """Locks victories in from the strongest down, over every order of equally strong ones."""
    winners = set()

    @lru_cache(None)
    def lock(locked, left):
        if not left:
            winners.update(c for c in p.all if all(d != c for _, d in locked))
            return
        top = max(by(a, b) for a, b in left)
        for pair in left:
            if by(*pair) == top:
                rest = tuple(other for other in left if other != pair)
                lock(locked if refuses(locked, pair) else locked | {pair}, rest)

    lock(frozenset(), tuple(victories(p)))
    return sorted(winners)


def cycle(locked, pair):
    return reaches(locked, pair[1], pair[0])


def ranked_pairs(p, margins=False):
    return locking(p, strength(p, margins), cycle)


def ranked_pairs_zt(p):
    """Equally strong victories in the order of the first ballot: of its best candidates first, over their worst."""
    first = p.ballots[0]["tiers"]
    place = {c: (at, c) for at, tier in enumerate(first) for c in tier}
    # A pair that nobody wins counts as a victory of strength 0 for the one that the first ballot puts higher.
    pairs = [(a, b) for a in p.all for b in p.all if a != b and p.margin(a, b) >= 0]

    def order(pair):
        a, b = pair
        return (-p.margin(a, b), place.get(a, (p.n, a)), place.get(b, (p.n, b)))

    locked = set()
    for pair in sorted(pairs, key=order):
        if not cycle(locked, pair):
            locked.add(pair)
    return [c for c in p.all if all(d != c for _, d in locked)]


def river(p):
    return locking(p, p.margin, lambda locked, pair: cycle(locked, pair) or any(d == pair[1] for _, d in locked))


def split_cycle(p, among=None):
    among = p.all if among is None else among
    removed = set()
    for size in range(2, len(among) + 1):
        for ring in permutations(among, size):
            steps = list(zip(ring, ring[1:] + ring[:1]))
            if all(p.beats(a, b) for a, b in steps):
                weakest = min(p.margin(a, b) for a, b in steps)
                removed |= {(a, b) for a, b in steps if p.margin(a, b) == weakest}
    return [c for c in among if not any(p.beats(d, c) and (d, c) not in removed for d in among)]


def stable(p):
    def winners(among):
        left = split_cycle(p, among)
        if len(left) < 2:
            return left
        pairs = [(a, b) for a in left for b in among if a != b]
        wins = {(a, b) for a, b in pairs if a in winners([c for c in among if c != b])}
        if not wins:
            return []
        top = max(p.margin(a, b) for a, b in wins)
        return sorted({a for a, b in wins if p.margin(a, b) == top})

    return winners(p.all)


def kemeny(p):
    def contradicts(order):
        return sum(p.prefer(b, a) for a, b in combinations(order, 2))

    orders = list(permutations(p.all))
    fewest = min(map(contradicts, orders))
    return sorted({order[0] for order in orders if contradicts(order) == fewest})


def smith(p):
    return p.smith()


def smith_irv(p):
    return irv(p, p.smith())


def tideman_alternative(p):
    left = p.all
    while True:
        left = p.smith(left)
        drop = fewest_firsts(p)(left)
        if len(drop) == len(left):
            return left
        left = [c for c in left if c not in drop]


def benham(p):
    return eliminate(p, fewest_firsts(p), lambda left: p.condorcet(left))


def condorcet_irv(p):
    return p.condorcet() or irv(p)


def black(p):
    return p.condorcet() or borda(p)


def raynaud(p):
    def defeat(left):
        return lambda c: max([p.margin(d, c) for d in left if p.beats(d, c)], default=0)
    return eliminate(p, lambda left: best(left, defeat(left)), one)


def bradley_terry(p):
    """The strengths that explain the victories best, by Newton's way; each pair starts with half a victory each way."""
    wins = [[p.prefer(a, b) + 0.5 if a != b else 0.0 for b in p.all] for a in p.all]
    log = [0.0] * p.n
    for _ in range(20000):
        moved = 0.0
        for a in p.all:
            chance = [1 / (1 + math.exp(log[b] - log[a])) for b in p.all]
            met = [wins[a][b] + wins[b][a] for b in p.all]
            slope = sum(wins[a][b] - met[b] * chance[b] for b in p.all if b != a)
            bend = sum(met[b] * chance[b] * (1 - chance[b]) for b in p.all if b != a)
            step = slope / bend if bend else 0.0
            log[a] += step
            moved = max(moved, abs(step))
        if moved < 1e-13:
            break
    strengths = [math.exp(x) for x in log]
    average = sum(strengths) / len(strengths)
    return best(p.all, lambda c: round(strengths[c] / average, 6))


def verdicts(p):
    count = [Fraction(0)] * p.n
    for ballot in p.ballots:
        count[ballot["trail"][0]] += 1
    return most(count, p.all)


def judge(p):
    return verdicts(p) if len(p.ballots) == 1 else []


# The name of each rule, what it reads of a ballot, and the rule.
RULES = {
    "plurality": ("first", plurality),
    "majority": ("first", lambda p: over(p, Fraction(1, 2))),
    "super-majority": ("first", lambda p: over(p, Fraction(2, 3) if p.threshold is None else p.threshold)),
    "unanimity": ("first", unanimity),
    "weighted": ("first", weighted),
    "confidence": ("first", confidence),
    "log-odds": ("first", log_odds),
    "surprising": ("first", surprising),
    "pooled-rounds": ("trail", pooled),
    "trajectory": ("trail", trajectory),
    "score": ("points", score),
    "star": ("points", star),
    "median": ("points", median),
    "cumulative": ("purse", score),
    "approval": ("set", approval),
    "borda": ("tiers", borda),
    "mrr": ("tiers", mrr),
    "dowdall": ("tiers", dowdall),
    "anti-plurality": ("tiers", anti_plurality),
    "bucklin": ("tiers", bucklin),
    "irv": ("tiers", irv),
    "irv-parallel": ("tiers", irv_parallel),
    "runoff": ("tiers", runoff),
    "coombs": ("tiers", coombs),
    "baldwin": ("tiers", baldwin),
    "nanson": ("tiers", nanson),
    "weak-nanson": ("tiers", lambda p: nanson(p, strict=False)),
    "condorcet": ("tiers", condorcet),
    "weak-condorcet": ("tiers", weak_condorcet),
    "copeland": ("tiers", copeland),
    "llull": ("tiers", lambda p: copeland(p, tie=1)),
    "minimax": ("tiers", minimax),
    "minimax-margins": ("tiers", lambda p: minimax(p, margins=True)),
    "schulze": ("tiers", schulze),
    "schulze-margins": ("tiers", lambda p: schulze(p, margins=True)),
    "ranked-pairs": ("tiers", ranked_pairs),
    "ranked-pairs-margins": ("tiers", lambda p: ranked_pairs(p, margins=True)),
    "ranked-pairs-zt": ("tiers", ranked_pairs_zt),
    "river": ("tiers", river),
    "split-cycle": ("tiers", split_cycle),
    "stable-voting": ("tiers", stable),
    "kemeny": ("tiers", kemeny),
    "smith": ("tiers", smith),
    "schwartz": ("tiers", Poll.schwartz),
    "smith-irv": ("tiers", smith_irv),
    "tideman-alternative": ("tiers", tideman_alternative),
    "benham": ("tiers", benham),
    "condorcet-irv": ("tiers", condorcet_irv),
    "black": ("tiers", black),
    "raynaud": ("tiers", raynaud),
    "bradley-terry": ("tiers", bradley_terry),
    "judge": ("orders", judge),
    "jury": ("orders", verdicts),
}


# Ties, in the order of docs/voting.md.

def lot(seed, question, name):
    text = question.encode()
    data = seed.to_bytes(8, "little") + len(text).to_bytes(8, "little") + text + name.encode()
    return hashlib.sha256(data).digest()


def backs(ballot):
    """The only candidate that a ballot puts first, if there is one."""
    return ballot["alone"]


def untie(p, reads, tied, names, seed, question, families_recorded=None):
    """Returns the winner and the steps that were needed."""
    left, steps = list(tied), []

    def by_weights():
        if all(b["right"] is None for b in p.ballots):
            return left
        return best(left, lambda c: sum((odds(p, b) for b in p.ballots if backs(b) == c), Fraction(0)))

    def by_families():
        if families_recorded is not None:
            return [c for c in left if c in families_recorded] or left
        return best(left, lambda c: len({b["family"] for b in p.ballots if backs(b) == c}))

    def by_pairs():
        if reads != "tiers":
            return left
        return best(left, lambda c: sum(1 for d in left if p.beats(c, d)))

    def by_the_most_reliable():
        known = [(b["right"], backs(b)) for b in p.ballots if b["right"] is not None and backs(b) in left]
        top = max((right for right, _ in known), default=None)
        return [c for c in left if (top, c) in known] or left

    def by_lot():
        return [min(left, key=lambda c: lot(seed, question, names[c]))]

    chain = [
        ("weights", by_weights),
        ("families", by_families),
        ("pairwise", by_pairs),
        ("best member", by_the_most_reliable),
        ("arbiter", None),
        ("lot", by_lot),
    ]
    for name, step in chain:
        if len(left) < 2:
            break
        steps.append(name)
        if step:
            left = step()
    return (left[0] if left else None), steps
