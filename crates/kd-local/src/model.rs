//! The network: llama, qwen2 and qwen3, from a GGUF file to logits.
//!
//! Takes the tokens of any number of sequences as one batch of rows and returns the logits of the requested rows. Each
//! row's numbers depend only on its own sequence: not on other rows, the number of threads, or how a prompt was split.

mod config;
mod linear;

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use self::config::Config;
use self::linear::{Linear, Plan};
use crate::error::Error;
use crate::gguf::Gguf;
use crate::kernels::{self, Acts, BLOCK, LANES, Simd};
use crate::kv::Sequence;
use crate::pool::Pool;
use crate::quant;

/// Queries processed together per pass over the keys.
const QUERIES: usize = 16;
/// Minimum number of rows at which the work between the matrices is parallelized too.
const MANY_ROWS: usize = 8;

/// A loaded network.
pub(crate) struct Model {
    pub(crate) config: Config,
    simd: Simd,
    embedding: Option<Linear>,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    output: Linear,
}

struct Layer {
    attention_norm: Vec<f32>,
    /// Queries, keys and values, stacked.
    qkv: Linear,
    bias: Option<Vec<f32>>,
    /// Norms of each head's query and key.
    head_norms: Option<[Vec<f32>; 2]>,
    attention_out: Linear,
    feed_norm: Vec<f32>,
    /// Gate and up, stacked.
    gate_up: Linear,
    down: Linear,
}

/// One token to evaluate. The rows of a sequence are adjacent and in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) token: u32,
    /// Index into the sequences of the batch.
    pub(crate) sequence: usize,
    /// Whether its logits are requested.
    pub(crate) logits: bool,
}

/// Buffers reused between steps.
#[derive(Default)]
pub(crate) struct Scratch {
    x: Vec<f32>,
    q: Vec<f32>,
    attended: Vec<f32>,
    y: Vec<f32>,
    acts: Acts,
    turns: Vec<(f32, f32)>,
}

impl Model {
    /// Packs a file's weights, using `pool` in parallel.
    pub(crate) fn load(gguf: &Gguf, pool: &Pool, simd: Simd) -> Result<Self, Error> {
        let config = Config::read(gguf)?;
        let (shape, width) = (config.shape, config.width);
        let (q_rows, kv_rows) = (config.heads * shape.dim, shape.heads * shape.dim);
        let mut plan = Plan::new(gguf);
        // All matrices are planned and checked first, then packed in parallel, then assembled in the same order.
        for i in 0..shape.layers {
            let name = |what: &str| format!("blk.{i}.{what}.weight");
            plan.add(
                &[
                    (name("attn_q"), q_rows),
                    (name("attn_k"), kv_rows),
                    (name("attn_v"), kv_rows),
                ],
                width,
            )?;
            plan.add(&[(name("attn_output"), width)], q_rows)?;
            plan.add(
                &[
                    (name("ffn_gate"), config.feed_forward),
                    (name("ffn_up"), config.feed_forward),
                ],
                width,
            )?;
            plan.add(&[(name("ffn_down"), width)], config.feed_forward)?;
        }
        let tied = !gguf.has_tensor("output.weight");
        plan.add(&[("token_embd.weight".into(), config.vocab)], width)?;
        if !tied {
            plan.add(&[("output.weight".into(), config.vocab)], width)?;
        }
        let mut packed = plan.pack(pool)?.into_iter();
        let mut next = || {
            packed.next().ok_or_else(|| Error::Worker {
                what: "a matrix was not packed".into(),
            })
        };
        let mut layers = Vec::new();
        for i in 0..shape.layers {
            layers.push(Layer {
                attention_norm: vector(gguf, &format!("blk.{i}.attn_norm.weight"), width)?,
                qkv: next()?,
                bias: bias(gguf, i, q_rows, kv_rows)?,
                head_norms: head_norms(gguf, &config, i)?,
                attention_out: next()?,
                feed_norm: vector(gguf, &format!("blk.{i}.ffn_norm.weight"), width)?,
                gate_up: next()?,
                down: next()?,
            });
        }
        let first = next()?;
        let (embedding, output) = if tied {
            (None, first)
        } else {
            (Some(first), next()?)
        };
        let norm = vector(gguf, "output_norm.weight", width)?;
        gguf.release();
        Ok(Self {
            config,
            simd,
            embedding,
            layers,
            norm,
            output,
        })
    }

    /// Returns the bytes that the weights occupy.
    pub(crate) fn bytes(&self) -> usize {
        let layers = self
            .layers
            .iter()
            .flat_map(|l| [&l.qkv, &l.attention_out, &l.gate_up, &l.down]);
        layers
            .chain([&self.output])
            .chain(&self.embedding)
            .map(Linear::bytes)
            .sum()
    }

    /// Evaluates `rows` and appends them to their sequences. Returns the logits of the rows that request them, in
    /// order.
    pub(crate) fn forward(
        &self,
        pool: &Pool,
        sequences: &mut [&mut Sequence],
        rows: &[Row],
        scratch: &mut Scratch,
    ) -> Vec<Vec<f32>> {
        if rows.is_empty() {
            return Vec::new();
        }
        assert!(
            rows.iter().all(|r| (r.token as usize) < self.config.vocab),
            "a token beyond the vocabulary"
        );
        let Scratch {
            x,
            q,
            attended,
            y,
            acts,
            turns,
        } = scratch;
        let (m, width) = (rows.len(), self.config.width);
        let places = places(sequences, rows);
        x.resize(m * width, 0.0);
        let embedding = self.embedding.as_ref().unwrap_or(&self.output);
        for (row, x) in rows.iter().zip(x.chunks_mut(width)) {
            embedding.row(row.token as usize, x);
        }
        self.config.rope.turns(&places, turns);
        for (i, layer) in self.layers.iter().enumerate() {
            self.norm_rows(pool, x, &layer.attention_norm, acts);
            layer.qkv.apply(pool, self.simd, acts, y);
            self.remember(layer, i, y, sequences, rows, &places, turns, q);
            self.attend(pool, i, q, sequences, rows, &places, attended);
            self.gather(pool, attended, m, acts);
            layer.attention_out.apply(pool, self.simd, acts, y);
            add(pool, x, y, m, width);
            self.norm_rows(pool, x, &layer.feed_norm, acts);
            layer.gate_up.apply(pool, self.simd, acts, y);
            self.gate(pool, y, m, acts);
            layer.down.apply(pool, self.simd, acts, y);
            add(pool, x, y, m, width);
        }
        for (s, sequence) in sequences.iter_mut().enumerate() {
            sequence.advance(rows.iter().filter(|r| r.sequence == s).count());
        }
        let wanted: Vec<usize> = (0..m).filter(|i| rows[*i].logits).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        fill_acts(pool, self.simd, wanted.len(), width, acts, |i, out| {
            kernels::rms_norm(
                self.simd,
                &x[wanted[i] * width..][..width],
                &self.norm,
                self.config.eps,
                out,
            );
        });
        self.output.apply(pool, self.simd, acts, y);
        (0..wanted.len())
            .map(|i| {
                let mut logits = vec![0.0; self.output.groups * LANES];
                panel_row(y, wanted.len(), i, 0, &mut logits);
                logits.truncate(self.config.vocab);
                logits
            })
            .collect()
    }

    fn norm_rows(&self, pool: &Pool, x: &[f32], weight: &[f32], acts: &mut Acts) {
        let width = self.config.width;
        fill_acts(pool, self.simd, x.len() / width, width, acts, |i, out| {
            kernels::rms_norm(
                self.simd,
                &x[i * width..][..width],
                weight,
                self.config.eps,
                out,
            );
        });
    }

    /// Adds the bias, normalizes and rotates queries and keys, stores keys and values, and lays the queries out for `attend`.
    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of one step; a struct would only rename the list"
    )]
    fn remember(
        &self,
        layer: &Layer,
        index: usize,
        y: &[f32],
        sequences: &mut [&mut Sequence],
        rows: &[Row],
        places: &[Place],
        turns: &[(f32, f32)],
        q: &mut Vec<f32>,
    ) {
        let (shape, m) = (self.config.shape, rows.len());
        let (dim, group) = (shape.dim, self.config.heads / shape.heads);
        let pairs = self.config.rope.angles.len();
        let scale = 1.0 / (dim as f32).sqrt();
        q.resize(m * self.config.heads * dim, 0.0);
        let mut row = vec![0.0; layer.qkv.groups * LANES];
        let mut unit = vec![0.0; dim];
        for (i, (r, place)) in rows.iter().zip(places).enumerate() {
            panel_row(y, m, i, 0, &mut row);
            if let Some(bias) = &layer.bias {
                row.iter_mut().zip(bias).for_each(|(v, b)| *v += b);
            }
            let turns = &turns[i * pairs..(i + 1) * pairs];
            let (queries, rest) = row.split_at_mut(self.config.heads * dim);
            let (keys, values) = rest.split_at_mut(shape.heads * dim);
            if let Some([of_queries, of_keys]) = &layer.head_norms {
                let heads = queries.chunks_mut(dim).map(|head| (head, of_queries));
                for (head, weight) in heads.chain(keys.chunks_mut(dim).map(|head| (head, of_keys)))
                {
                    kernels::rms_norm(self.simd, head, weight, self.config.eps, &mut unit);
                    head.copy_from_slice(&unit);
                }
            }
            for (h, head) in queries.chunks_mut(dim).enumerate() {
                self.config.rope.turn(head, turns);
                let at = ((h / group) * m + i) * group * dim + h % group * dim;
                q[at..at + dim]
                    .iter_mut()
                    .zip(head)
                    .for_each(|(q, v)| *q = *v * scale);
            }
            for (h, (key, value)) in keys.chunks_mut(dim).zip(values.chunks(dim)).enumerate() {
                self.config.rope.turn(key, turns);
                sequences[r.sequence].write(index, h, place.ahead, key, value);
            }
        }
    }

    /// Computes attention: `out[(kv head * rows + row) * group * dim ..]` for the queries in the same layout.
    #[allow(clippy::too_many_arguments, reason = "same as `remember`")]
    #[expect(
        clippy::too_many_lines,
        reason = "the three passes of one kernel share its buffers"
    )]
    fn attend(
        &self,
        pool: &Pool,
        layer: usize,
        q: &[f32],
        sequences: &[&mut Sequence],
        rows: &[Row],
        places: &[Place],
        out: &mut Vec<f32>,
    ) {
        thread_local! {
            static SCORES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
        }
        struct Piece<'a> {
            head: usize,
            row: usize,
            rows: usize,
            out: &'a mut [f32],
        }
        let (shape, m) = (self.config.shape, rows.len());
        let group = self.config.heads / shape.heads;
        let unit = group * shape.dim;
        out.resize(shape.heads * m * unit, 0.0);
        let mut pieces = Vec::new();
        for (head, mut left) in out.chunks_mut(m * unit).enumerate() {
            let mut row = 0;
            while row < m {
                let same = rows[row..]
                    .iter()
                    .take_while(|r| r.sequence == rows[row].sequence)
                    .count();
                let n = same.min((QUERIES / group).max(1));
                let (out, rest) = left.split_at_mut(n * unit);
                pieces.push(Mutex::new(Piece {
                    head,
                    row,
                    rows: n,
                    out,
                }));
                (row, left) = (row + n, rest);
            }
        }
        pool.run(pieces.len(), &|i| {
            let mut piece = pieces[i].lock().unwrap_or_else(PoisonError::into_inner);
            let Piece {
                head,
                row,
                rows: n,
                ref mut out,
            } = *piece;
            let sequence = &sequences[rows[row].sequence];
            let total = places[row + n - 1].position + 1;
            let queries = &q[(head * m + row) * unit..(head * m + row + n) * unit];
            let stride = total.next_multiple_of(LANES) + LANES;
            SCORES.with_borrow_mut(|scores| {
                scores.resize((stride * n * group).max(scores.len()), 0.0);
                let mut at = 0;
                for (segment, len) in sequence.stretches(total) {
                    kernels::scores(
                        self.simd,
                        segment.keys(layer, head),
                        len,
                        queries,
                        shape.dim,
                        &mut scores[at..],
                        stride,
                    );
                    at += len;
                }
                for (j, scores) in scores.chunks_mut(stride).take(n * group).enumerate() {
                    let seen = places[row + j / group].position + 1;
                    kernels::softmax(self.simd, &mut scores[..seen]);
                    scores[seen..total].fill(0.0);
                }
                out.fill(0.0);
                let mut at = 0;
                for (segment, len) in sequence.stretches(total) {
                    kernels::mix(
                        self.simd,
                        segment.values(layer, head),
                        len,
                        &scores[at..],
                        stride,
                        shape.dim,
                        out,
                    );
                    at += len;
                }
            });
        });
    }

    /// Collects the outputs of the heads, row by row, quantized.
    fn gather(&self, pool: &Pool, attended: &[f32], m: usize, acts: &mut Acts) {
        let columns = self.config.heads * self.config.shape.dim;
        let unit = columns / self.config.shape.heads;
        fill_acts(pool, self.simd, m, columns, acts, |i, out| {
            for (head, out) in out.chunks_mut(unit).enumerate() {
                out.copy_from_slice(&attended[(head * m + i) * unit..][..unit]);
            }
        });
    }

    /// Computes `silu(gate) * up`, row by row, quantized.
    fn gate(&self, pool: &Pool, y: &[f32], m: usize, acts: &mut Acts) {
        let columns = self.config.feed_forward;
        fill_acts(pool, self.simd, m, columns, acts, |i, out| {
            for (g, out) in out.chunks_mut(LANES).enumerate() {
                let (gate, up) = ((g * m + i) * LANES, ((g + columns / LANES) * m + i) * LANES);
                kernels::silu_mul(self.simd, &y[gate..gate + LANES], &y[up..up + LANES], out);
            }
        });
    }
}

/// The position of a row in its sequence.
struct Place {
    position: usize,
    /// Rows of the same sequence before it in this batch.
    ahead: usize,
}

fn places(sequences: &mut [&mut Sequence], rows: &[Row]) -> Vec<Place> {
    let mut counts = vec![0; sequences.len()];
    let places = rows
        .iter()
        .map(|row| {
            let ahead = counts[row.sequence];
            counts[row.sequence] += 1;
            Place {
                position: sequences[row.sequence].len() + ahead,
                ahead,
            }
        })
        .collect();
    for (sequence, n) in sequences.iter_mut().zip(counts) {
        sequence.reserve(n);
    }
    places
}

/// Copies row `row` of a panel of `m` rows, starting at group `first`.
fn panel_row(y: &[f32], m: usize, row: usize, first: usize, out: &mut [f32]) {
    for (g, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        out.copy_from_slice(&y[((first + g) * m + row) * LANES..][..LANES]);
    }
}

/// Adds a panel to rows.
fn add(pool: &Pool, x: &mut [f32], y: &[f32], m: usize, width: usize) {
    let rows = if m < MANY_ROWS {
        m
    } else {
        m.div_ceil(pool.threads() * 2)
    };
    pool.run_chunks(x, rows * width, |c, x| {
        for (i, x) in x.chunks_mut(width).enumerate() {
            for (g, x) in x.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                let y = &y[(g * m + c * rows + i) * LANES..][..LANES];
                x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
            }
        }
    });
}

/// Fills `m` rows of `columns` numbers and quantizes them.
fn fill_acts(
    pool: &Pool,
    simd: Simd,
    m: usize,
    columns: usize,
    acts: &mut Acts,
    fill: impl Fn(usize, &mut [f32]) + Sync,
) {
    acts.shape(m, columns);
    let (blocks, rows) = (
        columns / BLOCK,
        if m < MANY_ROWS {
            m
        } else {
            m.div_ceil(pool.threads() * 2)
        },
    );
    let parts = acts
        .q
        .chunks_mut(rows * columns)
        .zip(acts.d.chunks_mut(rows * blocks))
        .zip(acts.s.chunks_mut(rows * blocks));
    let parts: Vec<_> = parts.map(|((q, d), s)| Mutex::new((q, d, s))).collect();
    pool.run(parts.len(), &|p| {
        let mut part = parts[p].lock().unwrap_or_else(PoisonError::into_inner);
        let (q, d, s) = &mut *part;
        let mut buffer = vec![0.0; columns];
        let rows_of = q
            .chunks_mut(columns)
            .zip(d.chunks_mut(blocks))
            .zip(s.chunks_mut(blocks));
        for (i, ((q, d), s)) in rows_of.enumerate() {
            fill(p * rows + i, &mut buffer);
            kernels::quantise(simd, &buffer, q, d, s);
        }
    });
}

/// Returns the biases of queries, keys and values in one row; those missing from the file are zero.
fn bias(
    gguf: &Gguf,
    layer: usize,
    q_rows: usize,
    kv_rows: usize,
) -> Result<Option<Vec<f32>>, Error> {
    let names = ["attn_q", "attn_k", "attn_v"].map(|what| format!("blk.{layer}.{what}.bias"));
    if !names.iter().any(|name| gguf.has_tensor(name)) {
        return Ok(None);
    }
    let mut all = Vec::with_capacity(q_rows + 2 * kv_rows);
    for (name, len) in names.iter().zip([q_rows, kv_rows, kv_rows]) {
        match gguf.has_tensor(name) {
            true => all.extend(vector(gguf, name, len)?),
            false => all.extend(std::iter::repeat_n(0.0, len)),
        }
    }
    Ok(Some(all))
}

/// Returns the norms of a layer's queries and keys, if the architecture has them.
fn head_norms(gguf: &Gguf, config: &Config, layer: usize) -> Result<Option<[Vec<f32>; 2]>, Error> {
    if config.architecture != "qwen3" {
        return Ok(None);
    }
    let norm = |what: &str| {
        let name = format!("blk.{layer}.{what}.weight");
        vector(gguf, &name, config.shape.dim)
    };
    Ok(Some([norm("attn_q_norm")?, norm("attn_k_norm")?]))
}

fn vector(gguf: &Gguf, name: &str, len: usize) -> Result<Vec<f32>, Error> {
    let numbers = quant::floats(&gguf.tensor(name)?)?;
    if numbers.len() == len {
        Ok(numbers)
    } else {
        Err(Error::Gguf {
            what: format!(
                "`{name}` has {} numbers, but the model's sizes ask for {len}",
                numbers.len()
            ),
        })
    }
}

#[cfg(test)]
mod tests;
