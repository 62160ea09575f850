//! Tiny random models for the tests, and textbook arithmetic for them: plain, slow, in 64-bit floats.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary uses its part, and a test may fail"
)]

pub mod formats;

use crate::writer::Writer;
use formats::Format;

/// The parameters of a tiny model.
#[derive(Clone)]
pub struct Tiny {
    pub architecture: &'static str,
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub feed_forward: usize,
    pub context: u32,
    pub tied: bool,
    pub bias: bool,
    /// Numbers per head, if they are not an equal part of the width.
    pub dim: Option<usize>,
    /// Whether the model has norms of each head's query and key.
    pub head_norms: bool,
    /// Whether the model has Llama 3's divisors of the angles.
    pub factors: bool,
    /// Formats of the matrices, used in rotation.
    pub formats: Vec<Format>,
    pub seed: u64,
    /// Vocabulary entries without weights: such a file is inconsistent.
    pub words_without_weights: usize,
}

/// A matrix both as file bytes and as numbers.
struct Matrix {
    name: String,
    columns: usize,
    rows: usize,
    kind: u32,
    bytes: Vec<u8>,
    numbers: Vec<f64>,
}

/// A tiny model with its weights.
pub struct Built {
    pub tiny: Tiny,
    matrices: Vec<Matrix>,
}

/// Whole words of the vocabulary, besides the 256 bytes and the special tokens.
pub const WORDS: [&str; 4] = ["th", "he", "the", "Ġt"];
pub const SPECIALS: [&str; 3] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/// Returns the vocabulary size. Not a multiple of 8, which would hide mistakes in the last group.
pub fn vocab() -> usize {
    256 + WORDS.len() + SPECIALS.len()
}

/// Splitmix64: the same numbers on every platform.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Returns a number between -1 and 1.
    pub fn signed(&mut self) -> f32 {
        ((self.next() >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }
}

impl Default for Tiny {
    fn default() -> Self {
        Self {
            architecture: "llama",
            layers: 2,
            width: 64,
            heads: 4,
            kv_heads: 2,
            feed_forward: 96,
            context: 256,
            tied: true,
            bias: false,
            dim: None,
            head_norms: false,
            factors: false,
            formats: vec![Format::Q8_0],
            seed: 1,
            words_without_weights: 0,
        }
    }
}

impl Tiny {
    fn dim(&self) -> usize {
        self.dim.unwrap_or(self.width / self.heads)
    }

    pub fn build(self) -> Built {
        let mut random = Random(self.seed);
        let mut matrices = Vec::new();
        let mut turn = 0;
        let dim = self.dim();
        let (q, kv) = (self.heads * dim, self.kv_heads * dim);
        let mut add = |name: String, rows: usize, columns: usize, format: Option<Format>| {
            let format = format.unwrap_or_else(|| {
                turn += 1;
                self.formats[turn % self.formats.len()]
            });
            let mut bytes = Vec::new();
            let mut numbers = Vec::new();
            let size = 2.2 / (columns as f32).sqrt();
            for _ in 0..rows {
                let row = format.random_row(columns, size, &mut random);
                numbers.extend(format.numbers(&row, columns));
                bytes.extend(row);
            }
            matrices.push(Matrix {
                name,
                columns,
                rows,
                kind: format.id(),
                bytes,
                numbers,
            });
        };
        add(
            "token_embd.weight".into(),
            vocab(),
            self.width,
            Some(Format::Q8_0),
        );
        if !self.tied {
            add("output.weight".into(), vocab(), self.width, None);
        }
        for i in 0..self.layers {
            for (what, rows, columns) in [
                ("attn_q", q, self.width),
                ("attn_k", kv, self.width),
                ("attn_v", kv, self.width),
                ("attn_output", self.width, q),
                ("ffn_gate", self.feed_forward, self.width),
                ("ffn_up", self.feed_forward, self.width),
                ("ffn_down", self.width, self.feed_forward),
            ] {
                add(format!("blk.{i}.{what}.weight"), rows, columns, None);
            }
            for what in ["attn_norm", "ffn_norm"] {
                add(
                    format!("blk.{i}.{what}.weight"),
                    1,
                    self.width,
                    Some(Format::Norm),
                );
            }
            if self.head_norms {
                for what in ["attn_q_norm", "attn_k_norm"] {
                    let name = format!("blk.{i}.{what}.weight");
                    add(name, 1, dim, Some(Format::HeadNorm));
                }
            }
            if self.bias {
                for (what, n) in [("attn_q", q), ("attn_k", kv), ("attn_v", kv)] {
                    add(format!("blk.{i}.{what}.bias"), 1, n, Some(Format::F32));
                }
            }
        }
        add(
            "output_norm.weight".into(),
            1,
            self.width,
            Some(Format::Norm),
        );
        if self.factors {
            add("rope_freqs.weight".into(), 1, dim / 2, Some(Format::Norm));
        }
        Built {
            tiny: self,
            matrices,
        }
    }
}

impl Built {
    /// Returns the GGUF file.
    pub fn bytes(&self) -> Vec<u8> {
        self.writer().finish()
    }

    /// Returns the unfinished GGUF file, to add or break something.
    pub fn writer(&self) -> Writer {
        let t = &self.tiny;
        let key = |name: &str| format!("{}.{name}", t.architecture);
        let extra = (0..t.words_without_weights).map(|i| format!("{i}word"));
        let tokens: Vec<String> = byte_letters()
            .chain(WORDS.map(String::from))
            .chain(extra)
            .chain(SPECIALS.map(String::from))
            .collect();
        let kinds: Vec<i32> = (0..tokens.len())
            .map(|i| {
                if i < tokens.len() - SPECIALS.len() {
                    1
                } else {
                    3
                }
            })
            .collect();
        let template = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}";
        let mut writer = Writer::default()
            .str("general.architecture", t.architecture)
            .str("general.name", "Tiny")
            .str("general.license", "apache-2.0")
            .u32(&key("block_count"), t.layers as u32)
            .u32(&key("embedding_length"), t.width as u32)
            .u32(&key("attention.head_count"), t.heads as u32)
            .u32(&key("attention.head_count_kv"), t.kv_heads as u32)
            .u32(&key("feed_forward_length"), t.feed_forward as u32)
            .u32(&key("context_length"), t.context)
            .raw(
                &key("attention.layer_norm_rms_epsilon"),
                6,
                &1e-5f32.to_le_bytes(),
            )
            .raw(&key("rope.freq_base"), 6, &10_000f32.to_le_bytes())
            .str("tokenizer.ggml.model", "gpt2")
            .str("tokenizer.ggml.pre", "smollm")
            .strings("tokenizer.ggml.tokens", &tokens)
            .i32s("tokenizer.ggml.token_type", &kinds)
            .strings("tokenizer.ggml.merges", &["t h", "h e", "th e", "Ġ t"])
            .u32("tokenizer.ggml.eos_token_id", tokens.len() as u32 - 1)
            .str("tokenizer.chat_template", template);
        if let Some(dim) = t.dim {
            writer = writer
                .u32(&key("attention.key_length"), dim as u32)
                .u32(&key("attention.value_length"), dim as u32);
        }
        for m in &self.matrices {
            let dims: Vec<u64> = if m.rows == 1 {
                vec![m.columns as u64]
            } else {
                vec![m.columns as u64, m.rows as u64]
            };
            writer = writer.tensor(&m.name, &dims, m.kind, m.bytes.clone());
        }
        writer
    }

    fn get(&self, name: &str) -> Option<&[f64]> {
        self.matrices
            .iter()
            .find(|m| m.name == name)
            .map(|m| m.numbers.as_slice())
    }

    /// Computes the logits after each token, with textbook arithmetic.
    pub fn logits(&self, tokens: &[u32]) -> Vec<Vec<f64>> {
        let t = &self.tiny;
        let (width, dim, group) = (t.width, t.dim(), t.heads / t.kv_heads);
        let need = |name: &str| self.get(name).unwrap();
        let embedding = need("token_embd.weight");
        let mut x: Vec<Vec<f64>> = tokens
            .iter()
            .map(|t| embedding[*t as usize * width..][..width].to_vec())
            .collect();
        for i in 0..t.layers {
            let weight = |what: &str| need(&format!("blk.{i}.{what}.weight"));
            let project = |x: &[Vec<f64>], what: &str| -> Vec<Vec<f64>> {
                let bias = self.get(&format!("blk.{i}.{what}.bias"));
                x.iter()
                    .map(|x| {
                        let mut y = multiply(weight(what), x);
                        if let Some(bias) = bias {
                            y.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
                        }
                        y
                    })
                    .collect()
            };
            let h: Vec<_> = x.iter().map(|x| norm(x, weight("attn_norm"))).collect();
            let (mut q, mut k, v) = (
                project(&h, "attn_q"),
                project(&h, "attn_k"),
                project(&h, "attn_v"),
            );
            for (heads, what) in [(&mut q, "attn_q_norm"), (&mut k, "attn_k_norm")] {
                let Some(weight) = self.get(&format!("blk.{i}.{what}.weight")) else {
                    continue;
                };
                for head in heads.iter_mut().flat_map(|row| row.chunks_mut(dim)) {
                    head.copy_from_slice(&norm(head, weight));
                }
            }
            for p in 0..tokens.len() {
                q[p].chunks_mut(dim).for_each(|head| self.turn(head, p));
                k[p].chunks_mut(dim).for_each(|head| self.turn(head, p));
            }
            for p in 0..tokens.len() {
                let mut gathered = vec![0.0; t.heads * dim];
                for head in 0..t.heads {
                    let (a, b) = (head * dim, head / group * dim);
                    let scores: Vec<f64> = (0..=p)
                        .map(|o| {
                            (0..dim).map(|j| q[p][a + j] * k[o][b + j]).sum::<f64>()
                                / (dim as f64).sqrt()
                        })
                        .collect();
                    for (o, weight) in softmax(&scores).into_iter().enumerate() {
                        (0..dim).for_each(|j| gathered[a + j] += weight * v[o][b + j]);
                    }
                }
                let out = multiply(weight("attn_output"), &gathered);
                x[p].iter_mut().zip(out).for_each(|(x, o)| *x += o);
                let h = norm(&x[p], weight("ffn_norm"));
                let (gate, up) = (
                    multiply(weight("ffn_gate"), &h),
                    multiply(weight("ffn_up"), &h),
                );
                let mid: Vec<f64> = gate
                    .iter()
                    .zip(up)
                    .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
                    .collect();
                x[p].iter_mut()
                    .zip(multiply(weight("ffn_down"), &mid))
                    .for_each(|(x, o)| *x += o);
            }
        }
        let output = self.get("output.weight").unwrap_or(embedding);
        x.iter()
            .map(|x| multiply(output, &norm(x, need("output_norm.weight"))))
            .collect()
    }

    fn turn(&self, head: &mut [f64], position: usize) {
        let dim = head.len();
        let factors = self.get("rope_freqs.weight");
        for j in 0..dim / 2 {
            let mut angle = position as f64 * 10_000f64.powf(-2.0 * j as f64 / dim as f64);
            if let Some(factors) = factors {
                angle /= factors[j];
            }
            let (a, b) = if self.tiny.architecture != "llama" {
                (j, j + dim / 2)
            } else {
                (2 * j, 2 * j + 1)
            };
            let (x, y) = (head[a], head[b]);
            head[a] = x * angle.cos() - y * angle.sin();
            head[b] = x * angle.sin() + y * angle.cos();
        }
    }
}

fn multiply(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix
        .chunks(x.len())
        .map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum())
        .collect()
}

fn norm(x: &[f64], weight: &[f64]) -> Vec<f64> {
    let mean = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
    x.iter()
        .zip(weight)
        .map(|(v, w)| v / (mean + 1e-5f32 as f64).sqrt() * w)
        .collect()
}

pub fn softmax(x: &[f64]) -> Vec<f64> {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> = x.iter().map(|v| (v - top).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.into_iter().map(|v| v / sum).collect()
}

/// Returns the divergence between the true distribution and the one from the logits, in nats.
pub fn divergence(truth: &[f64], ours: &[f32]) -> f64 {
    let ours: Vec<f64> = ours.iter().map(|v| f64::from(*v)).collect();
    softmax(truth)
        .iter()
        .zip(softmax(&ours))
        .map(|(p, q)| if *p > 0.0 { p * (p / q).ln() } else { 0.0 })
        .sum()
}

/// Returns the characters that represent the 256 bytes in a byte-level vocabulary.
fn byte_letters() -> impl Iterator<Item = String> {
    let plain =
        |b: u32| (33..=126).contains(&b) || (161..=172).contains(&b) || (174..=255).contains(&b);
    (0..256u32).map(move |b| {
        let code = if plain(b) {
            b
        } else {
            256 + (0..b).filter(|c| !plain(*c)).count() as u32
        };
        char::from_u32(code).unwrap().to_string()
    })
}
