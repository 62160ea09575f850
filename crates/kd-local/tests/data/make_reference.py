#!/usr/bin/env python3
"""Makes `reference.json`: what SmolLM2-135M-Instruct.Q4_1 says by arithmetic in 64-bit floats.

An independent path to the numbers: reads the GGUF file itself, unpacks the weights, runs llama by the book with numpy,
nothing quantised on the way. Written: a prompt, the 32 likeliest tokens at its last 30 positions with their
log-probabilities, and 48 tokens of greedy continuation with the runner-up and the distance of the two logits.

    python3 make_reference.py MODEL.gguf > reference.json        # needs numpy
"""
import json
import struct
import sys

import numpy as np

PROMPT = [1, 9690, 198, 2683, 359, 253, 4028, 282, 253, 11940, 30, 19842, 13099, 284, 1643, 732, 13531, 1523, 469, 1038,
          1737, 30, 2, 198, 1, 4093, 198, 20646, 253, 1165, 2299, 1120, 351, 15142, 663, 355, 351, 5786, 24192, 15933, 47,
          378, 1763, 8211, 4658, 282, 216, 34, 32, 701, 30, 2, 198, 1, 520, 9531, 198]
POSITIONS, TOP, GREEDY = 30, 32, 48

data = open(sys.argv[1], "rb").read()
at = 0


def take(form):
    global at
    value = struct.unpack_from("<" + form, data, at)
    at += struct.calcsize("<" + form)
    return value[0]


def text():
    global at
    n = take("Q")
    at += n
    return data[at - n:at].decode("utf-8", "replace")


def value(kind):
    if kind == 8:
        return text()
    if kind == 9:
        inner, n = take("I"), take("Q")
        return [value(inner) for _ in range(n)]
    return take("BbHhIif?--Qqd"[kind])


assert data[:4] == b"GGUF"
at = 4
assert take("I") == 3
tensors, keys = take("Q"), take("Q")
meta = {}
for _ in range(keys):
    key = text()
    meta[key] = value(take("I"))
where = {}
for _ in range(tensors):
    name = text()
    dims = [take("Q") for _ in range(take("I"))]
    where[name] = (dims, take("I"), take("Q"))
base = -(-at // 32) * 32


def tensor(name):
    dims, kind, offset = where[name]
    count, start = int(np.prod(dims)), base + offset
    if kind == 0:
        flat = np.frombuffer(data, "<f4", count, start).astype(np.float64)
    elif kind == 3:  # Q4_1
        raw = np.frombuffer(data, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)]), count // 32, start)
        q = np.concatenate([raw["q"] & 15, raw["q"] >> 4], axis=1).astype(np.float64)
        flat = (q * raw["d"].astype(np.float64)[:, None] + raw["m"].astype(np.float64)[:, None]).ravel()
    elif kind == 8:  # Q8_0
        raw = np.frombuffer(data, np.dtype([("d", "<f2"), ("q", "i1", 32)]), count // 32, start)
        flat = (raw["q"].astype(np.float64) * raw["d"].astype(np.float64)[:, None]).ravel()
    else:
        raise SystemExit(f"{name}: type {kind}")
    return flat.reshape(dims[::-1])


layers, heads = meta["llama.block_count"], meta["llama.attention.head_count"]
kv_heads, width = meta["llama.attention.head_count_kv"], meta["llama.embedding_length"]
eps, theta = meta["llama.attention.layer_norm_rms_epsilon"], meta["llama.rope.freq_base"]
dim = width // heads
names = ["attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"]
blocks = [{n: tensor(f"blk.{i}.{n}.weight") for n in names} for i in range(layers)]
embedding, last_norm = tensor("token_embd.weight"), tensor("output_norm.weight")


def norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def rope(x):
    angle = np.arange(x.shape[0])[:, None] * theta ** (-np.arange(0, dim, 2) / dim)[None, :]
    cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2], out[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
    return out


def logits(tokens):
    n = len(tokens)
    x = embedding[tokens]
    mask = np.triu(np.full((n, n), -np.inf), 1)
    for b in blocks:
        h = norm(x, b["attn_norm"])
        q = rope((h @ b["attn_q"].T).reshape(n, heads, dim))
        k = rope((h @ b["attn_k"].T).reshape(n, kv_heads, dim)).repeat(heads // kv_heads, axis=1)
        v = (h @ b["attn_v"].T).reshape(n, kv_heads, dim).repeat(heads // kv_heads, axis=1)
        s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(dim) + mask
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", s, v).reshape(n, -1) @ b["attn_output"].T
        h = norm(x, b["ffn_norm"])
        gate = h @ b["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ b["ffn_up"].T)) @ b["ffn_down"].T
    return norm(x, last_norm) @ embedding.T


def log_softmax(row):
    row = row - row.max()
    return row - np.log(np.exp(row).sum())


rows = logits(PROMPT)[-POSITIONS:]
positions = []
for row in rows:
    p = log_softmax(row)
    best = np.argsort(-p)[:TOP]
    positions.append({"ids": best.tolist(), "log_probs": [round(float(v), 6) for v in p[best]]})
tokens, greedy = list(PROMPT), []
for _ in range(GREEDY):
    row = logits(tokens)[-1]
    best = np.argsort(-row)[:2]
    greedy.append({"id": int(best[0]), "second": int(best[1]), "distance": round(float(row[best[0]] - row[best[1]]), 5)})
    tokens.append(int(best[0]))
print("{")
print(f'"prompt": {json.dumps(PROMPT)},')
print('"positions": [\n' + ",\n".join(json.dumps(p) for p in positions) + "\n],")
print('"greedy": [\n' + ",\n".join(json.dumps(g) for g in greedy) + "\n]")
print("}")
