//! The network: llama and qwen2, from a GGUF file to logits.
//!
//! Tokens of any number of sequences come in as one batch of rows; logits of the rows that want them go out. Each row's
//! numbers depend on its own sequence alone: not on the other rows, the number of threads, or how a prompt was cut.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::gguf::{Gguf, Tensor, Value};
use crate::kernels::{self, Acts, BLOCK, LANES, Simd};
use crate::kv::{Sequence, Shape};
use crate::pool::Pool;
use crate::quant::{self, Tiles};

/// Queries that walk over the keys together.
const QUERIES: usize = 16;
/// Rows of a matrix that are packed as one piece of work.
const PACK_ROWS: usize = 2048;
/// From this many rows on, the work between the matrices is shared out too.
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

/// The sizes and constants that the file gives.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) architecture: String,
    /// Numbers that stand for one token.
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// Layers, heads of keys and values, numbers a head.
    pub(crate) shape: Shape,
    pub(crate) feed_forward: usize,
    pub(crate) eps: f32,
    pub(crate) vocab: usize,
    /// Tokens that the model was trained to hold.
    pub(crate) context: usize,
    rope: Rope,
}

/// How positions turn queries and keys.
#[derive(Clone, Debug)]
struct Rope {
    /// Pairs are the two halves of a head (NeoX) rather than neighbours.
    halves: bool,
    /// Angle a position, one for each pair.
    angles: Vec<f64>,
}

struct Layer {
    attention_norm: Vec<f32>,
    /// Queries, keys and values, one below the other.
    qkv: Linear,
    bias: Option<Vec<f32>>,
    attention_out: Linear,
    feed_norm: Vec<f32>,
    /// Gate and up, one below the other.
    gate_up: Linear,
    down: Linear,
}

/// A weight matrix as tiles, in parts that may be of different kinds.
struct Linear {
    columns: usize,
    groups: usize,
    parts: Vec<Part>,
}

struct Part {
    first: usize,
    groups: usize,
    tiles: Tiles,
}

/// One token to evaluate. The rows of a sequence stand together and in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) token: u32,
    /// Index into the sequences of the batch.
    pub(crate) sequence: usize,
    /// Whether its logits are wanted.
    pub(crate) logits: bool,
}

/// Buffers that live from step to step.
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
    /// Packs a file's weights, sharing the work over `pool`.
    pub(crate) fn load(gguf: &Gguf, pool: &Pool, simd: Simd) -> Result<Self, Error> {
        let config = Config::read(gguf)?;
        let (shape, width) = (config.shape, config.width);
        let (q_rows, kv_rows) = (config.heads * shape.dim, shape.heads * shape.dim);
        let mut plan = Plan { gguf, pieces: Vec::new() };
        // First all matrices are planned and checked, then packed side by side, then put together in the same order.
        for i in 0..shape.layers {
            let name = |what: &str| format!("blk.{i}.{what}.weight");
            plan.add(&[(name("attn_q"), q_rows), (name("attn_k"), kv_rows), (name("attn_v"), kv_rows)], width)?;
            plan.add(&[(name("attn_output"), width)], q_rows)?;
            plan.add(&[(name("ffn_gate"), config.feed_forward), (name("ffn_up"), config.feed_forward)], width)?;
            plan.add(&[(name("ffn_down"), width)], config.feed_forward)?;
        }
        let tied = !gguf.has_tensor("output.weight");
        plan.add(&[("token_embd.weight".into(), config.vocab)], width)?;
        if !tied {
            plan.add(&[("output.weight".into(), config.vocab)], width)?;
        }
        let mut packed = plan.pack(pool)?.into_iter();
        let mut next = || packed.next().ok_or_else(|| Error::Worker { what: "a matrix was not packed".into() });
        let mut layers = Vec::new();
        for i in 0..shape.layers {
            layers.push(Layer {
                attention_norm: vector(gguf, &format!("blk.{i}.attn_norm.weight"), width)?,
                qkv: next()?,
                bias: bias(gguf, i, q_rows, kv_rows)?,
                attention_out: next()?,
                feed_norm: vector(gguf, &format!("blk.{i}.ffn_norm.weight"), width)?,
                gate_up: next()?,
                down: next()?,
            });
        }
        let first = next()?;
        let (embedding, output) = if tied { (None, first) } else { (Some(first), next()?) };
        let norm = vector(gguf, "output_norm.weight", width)?;
        gguf.release();
        Ok(Self { config, simd, embedding, layers, norm, output })
    }

    /// Bytes that the weights take in memory.
    pub(crate) fn bytes(&self) -> usize {
        let layers = self.layers.iter().flat_map(|l| [&l.qkv, &l.attention_out, &l.gate_up, &l.down]);
        layers.chain([&self.output]).chain(&self.embedding).flat_map(|l| &l.parts).map(|p| p.tiles.bytes()).sum()
    }

    /// Evaluates `rows` and appends them to their sequences. Gives the logits of the rows that want them, in order.
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
        let Scratch { x, q, attended, y, acts, turns } = scratch;
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
            kernels::rms_norm(self.simd, &x[wanted[i] * width..][..width], &self.norm, self.config.eps, out);
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
            kernels::rms_norm(self.simd, &x[i * width..][..width], weight, self.config.eps, out);
        });
    }

    /// Adds the bias, turns queries and keys, writes keys and values down, and lays the queries out for `attend`.
    #[allow(clippy::too_many_arguments, reason = "the parts of one step; a struct of them would only rename the list")]
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
        for (i, (r, place)) in rows.iter().zip(places).enumerate() {
            panel_row(y, m, i, 0, &mut row);
            if let Some(bias) = &layer.bias {
                row.iter_mut().zip(bias).for_each(|(v, b)| *v += b);
            }
            let turns = &turns[i * pairs..(i + 1) * pairs];
            let (queries, rest) = row.split_at_mut(self.config.heads * dim);
            let (keys, values) = rest.split_at_mut(shape.heads * dim);
            for (h, head) in queries.chunks_mut(dim).enumerate() {
                self.config.rope.turn(head, turns);
                let at = ((h / group) * m + i) * group * dim + h % group * dim;
                q[at..at + dim].iter_mut().zip(head).for_each(|(q, v)| *q = *v * scale);
            }
            for (h, (key, value)) in keys.chunks_mut(dim).zip(values.chunks(dim)).enumerate() {
                self.config.rope.turn(key, turns);
                sequences[r.sequence].write(index, h, place.ahead, key, value);
            }
        }
    }

    /// Attention: `out[(kv head * rows + row) * group * dim ..]` for the queries laid out the same way.
    #[allow(clippy::too_many_arguments, reason = "as `remember`")]
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
                let same = rows[row..].iter().take_while(|r| r.sequence == rows[row].sequence).count();
                let n = same.min((QUERIES / group).max(1));
                let (out, rest) = left.split_at_mut(n * unit);
                pieces.push(Mutex::new(Piece { head, row, rows: n, out }));
                (row, left) = (row + n, rest);
            }
        }
        pool.run(pieces.len(), &|i| {
            let mut piece = pieces[i].lock().unwrap_or_else(PoisonError::into_inner);
            let Piece { head, row, rows: n, ref mut out } = *piece;
            let sequence = &sequences[rows[row].sequence];
            let total = places[row + n - 1].position + 1;
            let queries = &q[(head * m + row) * unit..(head * m + row + n) * unit];
            let stride = total.next_multiple_of(LANES) + LANES;
            SCORES.with_borrow_mut(|scores| {
                scores.resize((stride * n * group).max(scores.len()), 0.0);
                let mut at = 0;
                for (segment, len) in sequence.stretches(total) {
                    kernels::scores(self.simd, segment.keys(layer, head), len, queries, shape.dim, &mut scores[at..], stride);
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
                    kernels::mix(self.simd, segment.values(layer, head), len, &scores[at..], stride, shape.dim, out);
                    at += len;
                }
            });
        });
    }

    /// What the heads gathered, row by row, quantised.
    fn gather(&self, pool: &Pool, attended: &[f32], m: usize, acts: &mut Acts) {
        let columns = self.config.heads * self.config.shape.dim;
        let unit = columns / self.config.shape.heads;
        fill_acts(pool, self.simd, m, columns, acts, |i, out| {
            for (head, out) in out.chunks_mut(unit).enumerate() {
                out.copy_from_slice(&attended[(head * m + i) * unit..][..unit]);
            }
        });
    }

    /// `silu(gate) * up`, row by row, quantised.
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

/// Where a row stands in its sequence.
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
            Place { position: sequences[row.sequence].len() + ahead, ahead }
        })
        .collect();
    for (sequence, n) in sequences.iter_mut().zip(counts) {
        sequence.reserve(n);
    }
    places
}

/// Row `row` of a panel of `m` rows, from group `first` on.
fn panel_row(y: &[f32], m: usize, row: usize, first: usize, out: &mut [f32]) {
    for (g, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        out.copy_from_slice(&y[((first + g) * m + row) * LANES..][..LANES]);
    }
}

/// Adds a panel to rows.
fn add(pool: &Pool, x: &mut [f32], y: &[f32], m: usize, width: usize) {
    let rows = if m < MANY_ROWS { m } else { m.div_ceil(pool.threads() * 2) };
    pool.run_chunks(x, rows * width, |c, x| {
        for (i, x) in x.chunks_mut(width).enumerate() {
            for (g, x) in x.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                let y = &y[(g * m + c * rows + i) * LANES..][..LANES];
                x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
            }
        }
    });
}

/// Fills `m` rows of `columns` numbers and quantises them.
fn fill_acts(
    pool: &Pool,
    simd: Simd,
    m: usize,
    columns: usize,
    acts: &mut Acts,
    fill: impl Fn(usize, &mut [f32]) + Sync,
) {
    acts.shape(m, columns);
    let (blocks, rows) = (columns / BLOCK, if m < MANY_ROWS { m } else { m.div_ceil(pool.threads() * 2) });
    let parts = acts.q.chunks_mut(rows * columns).zip(acts.d.chunks_mut(rows * blocks)).zip(acts.s.chunks_mut(rows * blocks));
    let parts: Vec<_> = parts.map(|((q, d), s)| Mutex::new((q, d, s))).collect();
    pool.run(parts.len(), &|p| {
        let mut part = parts[p].lock().unwrap_or_else(PoisonError::into_inner);
        let (q, d, s) = &mut *part;
        let mut buffer = vec![0.0; columns];
        let rows_of = q.chunks_mut(columns).zip(d.chunks_mut(blocks)).zip(s.chunks_mut(blocks));
        for (i, ((q, d), s)) in rows_of.enumerate() {
            fill(p * rows + i, &mut buffer);
            kernels::quantise(simd, &buffer, q, d, s);
        }
    });
}

impl Linear {
    /// All outputs for `acts`, as a panel: `y[(group * rows + row) * 8 + lane]`.
    fn apply(&self, pool: &Pool, simd: Simd, acts: &Acts, y: &mut Vec<f32>) {
        debug_assert_eq!(acts.columns, self.columns);
        y.resize(self.groups * acts.rows * LANES, 0.0);
        // Several pieces a thread, so that one that is held up does not hold up all; not so many that claiming costs.
        let groups = match pool.threads() {
            1 => self.groups,
            threads => self.groups.div_ceil(threads * 4).max(2),
        };
        let unit = acts.rows * LANES;
        pool.run_chunks(y, groups * unit, |c, y| {
            let mut at = c * groups;
            let end = at + y.len() / unit;
            let mut y = y;
            for part in &self.parts {
                let (from, to) = (at.max(part.first), end.min(part.first + part.groups));
                if from < to {
                    let (out, rest) = y.split_at_mut((to - from) * unit);
                    part.tiles.matmul(simd, from - part.first..to - part.first, acts, out);
                    (y, at) = (rest, to);
                }
            }
        });
    }

    fn row(&self, row: usize, out: &mut [f32]) {
        let group = row / LANES;
        if let Some(part) = self.parts.iter().find(|p| (p.first..p.first + p.groups).contains(&group)) {
            part.tiles.row(row - part.first * LANES, out);
        }
    }
}

/// Matrices to be packed.
struct Plan<'a> {
    gguf: &'a Gguf,
    pieces: Vec<(usize, Vec<(Tensor<'a>, std::ops::Range<usize>)>)>,
}

impl<'a> Plan<'a> {
    /// Plans one matrix out of tensors that stand one below the other, after checking their sizes.
    fn add(&mut self, tensors: &[(String, usize)], columns: usize) -> Result<(), Error> {
        let mut pieces = Vec::new();
        for (name, rows) in tensors {
            let tensor = self.gguf.tensor(name)?;
            if tensor.row_len() != columns || tensor.rows() != *rows {
                return Err(Error::Gguf {
                    what: format!("`{name}` is {:?}, but the model's sizes ask for [{columns}, {rows}]", tensor.dims),
                });
            }
            for start in (0..*rows).step_by(PACK_ROWS) {
                pieces.push((tensor.clone(), start..(start + PACK_ROWS).min(*rows)));
            }
        }
        self.pieces.push((columns, pieces));
        Ok(())
    }

    fn pack(self, pool: &Pool) -> Result<Vec<Linear>, Error> {
        let flat: Vec<_> = self.pieces.iter().flat_map(|(_, pieces)| pieces).collect();
        let done: Vec<Mutex<Option<Result<Tiles, Error>>>> = flat.iter().map(|_| Mutex::new(None)).collect();
        pool.run(flat.len(), &|i| {
            let (tensor, rows) = flat[i];
            let tiles = Tiles::pack(tensor, rows.clone());
            *done[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(tiles);
        });
        let mut done = done.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
        self.pieces
            .iter()
            .map(|(columns, pieces)| {
                let mut linear = Linear { columns: *columns, groups: 0, parts: Vec::new() };
                for (_, rows) in pieces {
                    let missing = || Error::Worker { what: "a matrix was not packed".into() };
                    let tiles = done.next().flatten().ok_or_else(missing)??;
                    let groups = rows.len().div_ceil(LANES);
                    linear.parts.push(Part { first: linear.groups, groups, tiles });
                    linear.groups += groups;
                }
                Ok(linear)
            })
            .collect()
    }
}

impl Config {
    fn read(gguf: &Gguf) -> Result<Self, Error> {
        let architecture = gguf.meta("general.architecture").and_then(Value::as_str).unwrap_or_default().to_owned();
        if architecture != "llama" && architecture != "qwen2" {
            return Err(Error::Unsupported { what: format!("the architecture `{architecture}`") });
        }
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str| gguf.meta(&key(name)).and_then(Value::as_u64).map(|v| v as usize);
        let need = |name: &str| {
            number(name)
                .filter(|n| (1..1 << 24).contains(n))
                .ok_or_else(|| Error::Gguf { what: format!("`{}` is missing or senseless", key(name)) })
        };
        let (width, heads) = (need("embedding_length")?, need("attention.head_count")?);
        let kv_heads = number("attention.head_count_kv").unwrap_or(heads);
        let dim = number("attention.key_length").unwrap_or(width / heads);
        let value_dim = number("attention.value_length").unwrap_or(dim);
        let feed_forward = need("feed_forward_length")?;
        let refuse = |what: String| Err(Error::Unsupported { what });
        if number("expert_count").unwrap_or(0) > 0 {
            return refuse("a mixture of experts".into());
        }
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) || value_dim != dim {
            return refuse(format!("{heads} heads of {dim} with {kv_heads} of {value_dim} for keys and values"));
        }
        if dim == 0 || !dim.is_multiple_of(LANES) || dim > 1024 {
            return refuse(format!("heads of {dim} numbers"));
        }
        if [width, feed_forward, heads * dim].iter().any(|n| !n.is_multiple_of(BLOCK)) {
            return refuse(format!("a width of {width}, {feed_forward} or {} (only multiples of {BLOCK})", heads * dim));
        }
        if gguf.has_tensor("blk.0.attn_q_norm.weight") {
            return refuse("norms of queries and keys".into());
        }
        let layers = need("block_count")?;
        let eps = gguf.meta(&key("attention.layer_norm_rms_epsilon")).and_then(Value::as_f32).unwrap_or(1e-5);
        let vocab = gguf.tensor("token_embd.weight")?.rows();
        Ok(Self {
            width,
            heads,
            shape: Shape { layers, heads: kv_heads, dim },
            feed_forward,
            eps,
            vocab,
            context: need("context_length")?,
            rope: Rope::read(gguf, &architecture, dim)?,
            architecture,
        })
    }
}

impl Rope {
    fn read(gguf: &Gguf, architecture: &str, dim: usize) -> Result<Self, Error> {
        let meta = |name: &str| gguf.meta(&format!("{architecture}.rope.{name}"));
        let turned = meta("dimension_count").and_then(Value::as_u64).map_or(dim, |v| v as usize);
        if turned == 0 || turned > dim || !turned.is_multiple_of(2) {
            return Err(Error::Gguf { what: format!("{turned} turned dimensions in heads of {dim}") });
        }
        let base = f64::from(meta("freq_base").and_then(Value::as_f32).unwrap_or(10_000.0));
        let stretch = match meta("scaling.type").and_then(Value::as_str) {
            None | Some("none") => 1.0,
            Some("linear") => f64::from(meta("scaling.factor").and_then(Value::as_f32).unwrap_or(1.0)),
            Some(other) => return Err(Error::Unsupported { what: format!("positions stretched by `{other}`") }),
        };
        // Llama 3.1 and later carry one divisor for each pair.
        let factors = match gguf.has_tensor("rope_freqs.weight") {
            true => Some(vector(gguf, "rope_freqs.weight", turned / 2)?),
            false => None,
        };
        let angles = (0..turned / 2).map(|j| {
            let factor = factors.as_ref().map_or(1.0, |f| f64::from(f[j]));
            base.powf(-2.0 * j as f64 / turned as f64) / stretch / factor
        });
        Ok(Self { halves: architecture == "qwen2", angles: angles.collect() })
    }

    /// Cosine and sine for each row and pair.
    fn turns(&self, places: &[Place], out: &mut Vec<(f32, f32)>) {
        out.clear();
        for place in places {
            out.extend(self.angles.iter().map(|angle| {
                let (sin, cos) = (place.position as f64 * angle).sin_cos();
                (cos as f32, sin as f32)
            }));
        }
    }

    fn turn(&self, head: &mut [f32], turns: &[(f32, f32)]) {
        let n = turns.len();
        for (j, (cos, sin)) in turns.iter().enumerate() {
            let (i, k) = if self.halves { (j, j + n) } else { (2 * j, 2 * j + 1) };
            let (a, b) = (head[i], head[k]);
            head[i] = a * cos - b * sin;
            head[k] = a * sin + b * cos;
        }
    }
}

fn vector(gguf: &Gguf, name: &str, len: usize) -> Result<Vec<f32>, Error> {
    let numbers = quant::floats(&gguf.tensor(name)?)?;
    if numbers.len() == len {
        Ok(numbers)
    } else {
        Err(Error::Gguf { what: format!("`{name}` has {} numbers, but the model's sizes ask for {len}", numbers.len()) })
    }
}

/// The biases of queries, keys and values in one row; those that the file lacks are zero.
fn bias(gguf: &Gguf, layer: usize, q_rows: usize, kv_rows: usize) -> Result<Option<Vec<f32>>, Error> {
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

#[cfg(test)]
mod tests;
