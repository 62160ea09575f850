#!/usr/bin/env python3
"""An independent verifier of sealed threads: standard library only, written from docs/record.md.

usage: verify.py FILE...        checks each file; prints one line for each
       verify.py FILE... --recount
                                also counts the ballots of the record again, by any of the rules (recount.py, rules.py)

Exit code: 0 if every file is unchanged, 12 if one is not, 1 if one cannot be read, 2 for a wrong command line.
"""
import hashlib
import json
import sys

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


class Bad(Exception):
    pass


def need(holds, what):
    if not holds:
        raise Bad(what)


# Ed25519, RFC 8032 5.1.

def recover(y, sign):
    need(y < P, "a point is not in its one form")
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    need((x * x - x2) % P == 0, "a point is not on the curve")
    need(x or not sign, "a point is not in its one form")
    return P - x if x & 1 != sign else x


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x = recover(y, sign)
    return (x, y, 1, x * y % P)


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(n, p):
    sum_ = (0, 1, 1, 0)
    while n:
        if n & 1:
            sum_ = add(sum_, p)
        p, n = add(p, p), n >> 1
    return sum_


def same(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = recover(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)
ZERO = (0, 1, 1, 0)


def check_signature(key, message, signature):
    a, r, s = point(key), point(signature[:32]), int.from_bytes(signature[32:], "little")
    need(s < L, "the signature is not in its one form")
    need(not same(times(8, a), ZERO) and not same(times(8, r), ZERO), "a point is weak")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    need(same(times(s, BASE), add(r, times(h, a))), "the signature does not match")


# The format.

def canonical(value):
    """RFC 8785 for what a seal holds: texts, whole numbers, and keys in ASCII."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8")


def sha(value):
    return hashlib.sha256(canonical(value)).hexdigest()


def unique(pairs):
    need(len(dict(pairs)) == len(pairs), "a key is there twice")
    return dict(pairs)


def fields(value, wanted, optional=()):
    need(isinstance(value, dict), "an object is missing")
    need(set(wanted) <= set(value) <= set(wanted) | set(optional), "fields are missing or unknown")
    for key, kind in wanted.items():
        need(type(value[key]) is kind, f"{key} is of another type")


def unhex(text, size):
    need(isinstance(text, str) and len(text) == 2 * size, "digits are missing")
    need(all(c in "0123456789abcdef" for c in text), "they are no digits in lower case")
    return bytes.fromhex(text)


def verify(data):
    try:
        seal = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
        return check(seal, data)
    except (ValueError, RecursionError) as error:
        raise Bad(f"no sealed thread: {error}") from error


def check(seal, data):
    fields(seal, {"entries": list, "head": str, "header": dict}, ["signature"])
    header = seal["header"]
    fields(header, {"events": int, "format": str, "messages": int, "sealed_at": str, "thread": str, "v": int})
    need(header["format"] == "kd-seal" and header["v"] == 1, "another format")
    head = sha(header)
    counts = {"thread": 0, "message": 0, "event": 0}
    for index, entry in enumerate(seal["entries"]):
        names = {"content": str, "hash": str, "index": int, "kind": str, "name": str, "previous": str}
        fields(entry, names, ["opened"])
        need(entry["index"] == index and entry["kind"] in counts, f"entry {index}")
        need(entry["previous"] == head, f"entry {index} does not follow")
        unhex(entry["content"], 32)
        link = {key: entry[key] for key in ("content", "index", "kind", "name", "previous")}
        need(sha(link) == entry["hash"], f"entry {index} was changed")
        if "opened" in entry:
            fields(entry["opened"], {"salt": str, "text": str})
            unhex(entry["opened"]["salt"], 16)
            need(sha(entry["opened"]) == entry["content"], f"the content of entry {index} was changed")
        counts[entry["kind"]] += 1
        head = entry["hash"]
    need(counts["message"] == header["messages"] and counts["event"] == header["events"], "the counts differ")
    need(head == seal["head"], "the head differs")
    if "signature" in seal:
        signed = seal["signature"]
        fields(signed, {"algorithm": str, "key": str, "signature": str})
        need(signed["algorithm"] == "ed25519", "another algorithm")
        message = canonical({"head": head, "purpose": "kd-seal v1"})
        check_signature(unhex(signed["key"], 32), message, unhex(signed["signature"], 64))
    need(canonical(seal) + b"\n" == data, "the file is not in canonical form")
    return seal


def recount_all(seal):
    """Counts the ballots again. Returns how many counts were compared."""
    from recount import Differs, recount

    events = [entry for entry in seal["entries"] if entry["kind"] == "event" and "opened" in entry]
    try:
        return recount(json.loads(entry["opened"]["text"]) for entry in events)
    except Differs as error:
        raise Bad(str(error)) from error


def main(args):
    again = "--recount" in args
    paths = [arg for arg in args if arg != "--recount"]
    if not paths or any(path.startswith("-") for path in paths):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    code = 0
    counts = files = 0
    for path in paths:
        files += 1
        try:
            with open(path, "rb") as file:
                seal = verify(file.read())
            counts += recount_all(seal) if again else 0
            if not again:
                signed = "signature" in seal and seal["signature"]["key"] or "none"
                print(f"ok {seal['head']} {len(seal['entries'])} {signed}")
        except OSError as error:
            code = code or 1
            print(f"unreadable: {path}: {error.strerror}")
        except Bad as error:
            code = 12
            print(f"changed: {path}: {error}")
    if again:
        print(f"{files} files, {counts} counts")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
