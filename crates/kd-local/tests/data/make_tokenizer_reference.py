#!/usr/bin/env python3
"""Makes the tokenizer's reference: what another implementation says about hard lines.

    pip install tokenizers==0.23.3
    python3 make_tokenizer_reference.py SmolLM2-135M-Instruct.Q4_1.gguf

writes, beside itself,
  smollm2-merges.bin      the vocabulary: 48,900 merges as pairs of little-endian u16 token ids. With the
                          special tokens and single bytes of the JSON file that is all: token
                          (specials + bytes + n) is what merge n joins. Apache-2.0, as the model.
  tokenizer-reference.json  special tokens, single-byte tokens, and for each word-splitting rule the ids
                          of every line by the `tokenizers` library, whose patterns are the published
                          ones with look-ahead (not those of our code).
"""

import json
import pathlib
import struct
import sys

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

HERE = pathlib.Path(__file__).parent

LINES = [
    "",
    " ",
    "Hello, world!",
    "The capital of France is Paris.",
    "  two leading, two trailing  ",
    "tabs\tand\t\tmore\t",
    "one\ntwo\n\nthree\n\n\n\nfour",
    "\n\n\n",
    " \n \n  x \r\n y\r\n\r\nz",
    "    indented\n        twice\n\tand a tab",
    "many          spaces          here",
    "non\u00a0breaking\u00a0\u00a0spaces\u2003\u2003wide\u3000ideographic",
    "1 12 123 1234 12345 1,234,567.89 0x1F 3.14e-10 ½ ² Ⅷ ٣٤٥ 五",
    "2026-11-21T10:42:00Z",
    "I'm you're he's we've they'll she'd don't I'M YOU'RE 'tis '' 's's",
    "it’s a curly apostrophe — and an em dash…",
    "snake_case camelCase SCREAMING_CASE kebab-case a.b.c::d->e",
    "fn main() { println!(\"{:?}\", vec![1, 2, 3].iter().map(|x| x * 2).collect::<Vec<_>>()); }",
    "def f(x):\n    return {k: v for k, v in x.items() if v != 0}  # note\n",
    "<div class=\"a\">&nbsp;<!-- c --></div>",
    "SELECT * FROM t WHERE a >= 10 AND b <> 'x''y';",
    "{\"vote\": \"agree\", \"confidence\": 87, \"reason\": \"so\\nwell\"}",
    "$x^2 + y^2 = z^2$ \\frac{a}{b} ~ |x| <= y",
    "https://example.org/a/b?c=d&e=%20f#g user@example.org",
    "你好,世界!今天天气很好。",
    "日本語のテキスト、カタカナとひらがな。ｶﾀｶﾅ",
    "한국어 문장입니다. 안녕하세요?",
    "Привет, мир! Ёлка и подъезд.",
    "Ελληνικά: καλημέρα κόσμε",
    "مرحبا بالعالم، كيف الحال؟",
    "שלום עולם! מה שלומך?",
    "नमस्ते दुनिया — हिन्दी में",
    "สวัสดีชาวโลก",
    "Tiếng Việt có dấu; čeština, łódź, größer, naïve, façade, œuvre",
    "e\u0301 decomposed, \u00e9 composed, a\u0308\u0323 stacked",
    "👍 😀😀 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ❤️ 1️⃣",
    "\U0001f9d1\u200d\U0001f4bb codes",
    "math 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 ∀x∈ℝ: ⌈x⌉ ≥ x ∑∏∫",
    "zero\u200bwidth\u200cjoin\u200ders\ufeffbom \u202eright to left\u202c end",
    "control \u0001 \u0004 \u0007 \u001b[31mred\u001b[0m \u007f \u0085 end",
    "\u0004\u0006 glue\u0013d",
    "private \ue000 \uf8ff unassigned \U000e0041 plane 4 \U00040000 last \U0010ffff",
    "\ufffd replacement \ufffe",
    "<|im_start|>system\nYou obey.<|im_end|>",
    "<|endoftext|> <|im_end|><|im_end|> <| im_end |> <repo_name>x<file_sep>",
    "<|im_start|<|im_start|>|>",
    "<s> </s> [INST] <|eot_id|> <0x0A> <unk>",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "!!!!!!!!!! ?????????? ---------- ========== ########## ..........",
    "antidisestablishmentarianism Donaudampfschifffahrtsgesellschaftskapitän",
    "Should a small team start with SQLite or PostgreSQL?",
    "  'll 's 'RE \n 't",
    "a\u2028b\u2029c\u000bd\u000ce",
    "# Title\n\n- item *one*\n- item `two`\n\n```rust\nlet x = 1;\n```\n",
    "ⓐⓑ ＡＢＣ ﬁ ﬂ ㎏ № ™ © ª º",
    "ǅ ʰ ー 々 〆 ゝ ᠎ ⃝",
    "\u0e33\u0301\u20dd \u093f\u0903",
    "ends in spaces and line\n  ",
    "x\n",
    "\tx",
]

CONTRACTIONS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
RULES = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL],
    "qwen2": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}


def read_metadata(path):
    """The metadata of a GGUF file, by the format's description."""
    data = path.read_bytes()
    place = 24

    def number(code):
        nonlocal place
        (value,) = struct.unpack_from("<" + code, data, place)
        place += struct.calcsize("<" + code)
        return value

    def text():
        nonlocal place
        size = number("Q")
        place += size
        return data[place - size : place].decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, count = number("I"), number("Q")
            return [value(inner) for _ in range(count)]
        return number("BbHhIif?.."[kind] if kind < 8 else "QQQqd"[kind - 8])

    assert data[:4] == b"GGUF"
    (pairs,) = struct.unpack_from("<Q", data, 16)
    return {text(): value(number("I")) for _ in range(pairs)}


def tokenizer(tokens, merges, pre):
    made = Tokenizer(
        models.BPE(
            vocab={token: number for number, token in enumerate(tokens)},
            merges=[tuple(merge.split(" ")) for merge in merges],
            ignore_merges=pre == "llama-bpe",
        )
    )
    splits = [pre_tokenizers.Split(Regex(rule), "isolated") for rule in RULES[pre]]
    made.pre_tokenizer = pre_tokenizers.Sequence(
        splits + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return made


def main():
    metadata = read_metadata(pathlib.Path(sys.argv[1]))
    tokens, merges = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"]
    kinds = metadata["tokenizer.ggml.token_type"]
    ids = {token: number for number, token in enumerate(tokens)}
    specials = [token for token, kind in zip(tokens, kinds) if kind == 3]
    assert ids[specials[-1]] == len(specials) - 1, "the special tokens stand first"
    singles = tokens[len(specials) : len(tokens) - len(merges)]
    assert all(len(token) == 1 for token in singles)
    packed = bytearray()
    for number, merge in enumerate(merges):
        left, right = merge.split(" ")
        assert ids[left + right] == len(specials) + len(singles) + number, merge
        packed += struct.pack("<HH", ids[left], ids[right])
    (HERE / "smollm2-merges.bin").write_bytes(packed)

    reference = {
        "specials": specials,
        "bytes": "".join(singles),
        "chat_template": metadata["tokenizer.chat_template"],
        "lines": LINES,
        "ids": {
            pre: [made.encode(line, add_special_tokens=False).ids for line in LINES]
            for pre in RULES
            for made in [tokenizer(tokens, merges, pre)]
        },
    }
    lines = json.dumps(reference, ensure_ascii=True, indent=None, separators=(",", ":"))
    (HERE / "tokenizer-reference.json").write_text(lines.replace('],[', '],\n[').replace('","', '",\n"') + "\n")


if __name__ == "__main__":
    main()
