//! The dimensions and constants of a network, from a file's metadata, and its rotary position embedding.

use super::{Place, vector};
use crate::error::Error;
use crate::gguf::{Gguf, Value};
use crate::kernels::{BLOCK, LANES};
use crate::kv::Shape;

/// The dimensions and constants given in the file.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) architecture: String,
    /// Numbers per token.
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// Layers, key-value heads, numbers per head.
    pub(crate) shape: Shape,
    pub(crate) feed_forward: usize,
    pub(crate) eps: f32,
    pub(crate) vocab: usize,
    /// The model's training context in tokens.
    pub(crate) context: usize,
    pub(super) rope: Rope,
}

/// Rotary position embedding of queries and keys.
#[derive(Clone, Debug)]
pub(super) struct Rope {
    /// Pairs the two halves of a head (NeoX) rather than neighbors.
    halves: bool,
    /// The angle per position, for each pair.
    pub(super) angles: Vec<f64>,
}

/// Checks that the kernels can compute these shapes.
fn supported(
    (width, feed_forward): (usize, usize),
    (heads, dim): (usize, usize),
    (kv_heads, value_dim): (usize, usize),
) -> Result<(), Error> {
    let refuse = |what: String| Err(Error::Unsupported { what });
    if kv_heads == 0 || !heads.is_multiple_of(kv_heads) || value_dim != dim {
        return refuse(format!(
            "{heads} heads of {dim} with {kv_heads} of {value_dim} for keys and values"
        ));
    }
    if dim == 0 || !dim.is_multiple_of(LANES) || dim > 1024 {
        return refuse(format!("heads of {dim} numbers"));
    }
    if [width, feed_forward, heads * dim]
        .iter()
        .any(|n| !n.is_multiple_of(BLOCK))
    {
        return refuse(format!(
            "a width of {width}, {feed_forward} or {} (only multiples of {BLOCK})",
            heads * dim
        ));
    }
    Ok(())
}

impl Config {
    pub(super) fn read(gguf: &Gguf) -> Result<Self, Error> {
        let architecture = gguf
            .meta("general.architecture")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if !matches!(architecture.as_str(), "llama" | "qwen2" | "qwen3") {
            return Err(Error::Unsupported {
                what: format!("the architecture `{architecture}`"),
            });
        }
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str| {
            gguf.meta(&key(name))
                .and_then(Value::as_u64)
                .map(|v| v as usize)
        };
        let need = |name: &str| {
            number(name)
                .filter(|n| (1..1 << 24).contains(n))
                .ok_or_else(|| Error::Gguf {
                    what: format!("`{}` is missing or senseless", key(name)),
                })
        };
        let (width, heads) = (need("embedding_length")?, need("attention.head_count")?);
        let kv_heads = number("attention.head_count_kv").unwrap_or(heads);
        let dim = number("attention.key_length").unwrap_or(width / heads);
        let value_dim = number("attention.value_length").unwrap_or(dim);
        let feed_forward = need("feed_forward_length")?;
        if number("expert_count").unwrap_or(0) > 0 {
            return Err(Error::Unsupported {
                what: "a mixture of experts".into(),
            });
        }
        // Other architectures with these norms apply them elsewhere.
        if architecture != "qwen3" && gguf.has_tensor("blk.0.attn_q_norm.weight") {
            return Err(Error::Unsupported {
                what: "norms of queries and keys".into(),
            });
        }
        supported((width, feed_forward), (heads, dim), (kv_heads, value_dim))?;
        let layers = need("block_count")?;
        let eps = gguf
            .meta(&key("attention.layer_norm_rms_epsilon"))
            .and_then(Value::as_f32)
            .unwrap_or(1e-5);
        let vocab = gguf.tensor("token_embd.weight")?.rows();
        Ok(Self {
            width,
            heads,
            shape: Shape {
                layers,
                heads: kv_heads,
                dim,
            },
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
        let turned = meta("dimension_count")
            .and_then(Value::as_u64)
            .map_or(dim, |v| v as usize);
        if turned == 0 || turned > dim || !turned.is_multiple_of(2) {
            return Err(Error::Gguf {
                what: format!("{turned} turned dimensions in heads of {dim}"),
            });
        }
        let base = f64::from(
            meta("freq_base")
                .and_then(Value::as_f32)
                .unwrap_or(10_000.0),
        );
        let stretch = match meta("scaling.type").and_then(Value::as_str) {
            None | Some("none") => 1.0,
            Some("linear") => f64::from(
                meta("scaling.factor")
                    .and_then(Value::as_f32)
                    .unwrap_or(1.0),
            ),
            Some(other) => {
                return Err(Error::Unsupported {
                    what: format!("positions stretched by `{other}`"),
                });
            }
        };
        // Llama 3.1 and later have one divisor per pair.
        let factors = match gguf.has_tensor("rope_freqs.weight") {
            true => Some(vector(gguf, "rope_freqs.weight", turned / 2)?),
            false => None,
        };
        let angles = (0..turned / 2).map(|j| {
            let factor = factors.as_ref().map_or(1.0, |f| f64::from(f[j]));
            base.powf(-2.0 * j as f64 / turned as f64) / stretch / factor
        });
        Ok(Self {
            halves: architecture != "llama",
            angles: angles.collect(),
        })
    }

    /// Computes cosine and sine for each row and pair.
    pub(super) fn turns(&self, places: &[Place], out: &mut Vec<(f32, f32)>) {
        out.clear();
        for place in places {
            out.extend(self.angles.iter().map(|angle| {
                let (sin, cos) = (place.position as f64 * angle).sin_cos();
                (cos as f32, sin as f32)
            }));
        }
    }

    pub(super) fn turn(&self, head: &mut [f32], turns: &[(f32, f32)]) {
        let n = turns.len();
        for (j, (cos, sin)) in turns.iter().enumerate() {
            let (i, k) = if self.halves {
                (j, j + n)
            } else {
                (2 * j, 2 * j + 1)
            };
            let (a, b) = (head[i], head[k]);
            head[i] = a * cos - b * sin;
            head[k] = a * sin + b * cos;
        }
    }
}
