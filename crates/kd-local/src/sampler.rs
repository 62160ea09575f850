//! Chooses the next token from logits.
//!
//! The same settings, seed and logits give the same token on every machine, whatever else runs: ties go to the smaller
//! id, and every answer has its own random generator.

use std::collections::HashMap;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use crate::error::Error;
use crate::kernels::{self, Simd};

/// The parameters for choosing tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Above 1 flattens, below 1 sharpens; 0 always takes the most likely token.
    pub temperature: f32,
    /// Keeps the most likely tokens that together reach this probability; 1 keeps all.
    pub top_p: f32,
    /// Drops tokens less likely than this fraction of the most likely one; 0 drops none.
    pub min_p: f32,
    /// Number of most likely tokens to keep; 0 keeps all.
    pub top_k: usize,
    /// Penalizes tokens used among the answer's last [`repeat_window`](Self::repeat_window) tokens; 1 disables it.
    pub repeat_penalty: f32,
    /// Number of tokens of the answer that the three penalties consider.
    pub repeat_window: usize,
    /// Subtracted from a token's logit once per use.
    pub frequency_penalty: f32,
    /// Subtracted from the logit of a token that has been used.
    pub presence_penalty: f32,
    /// Seeds this answer's random generator.
    pub seed: u64,
}

impl Default for Sampling {
    /// Settings that keep small models from repeating themselves: 0.7, top-p 0.95, a light repetition penalty.
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_p: 0.95,
            min_p: 0.0,
            top_k: 0,
            repeat_penalty: 1.1,
            repeat_window: 64,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            seed: 0,
        }
    }
}

impl Sampling {
    /// Always takes the most likely token, without penalties.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            repeat_penalty: 1.0,
            ..Self::default()
        }
    }
}

/// The sampling state of one answer.
pub(crate) struct Sampler {
    settings: Sampling,
    random: ChaCha8Rng,
    simd: Simd,
    recent: Vec<u32>,
    candidates: Vec<(f32, u32)>,
}

impl Sampler {
    pub(crate) fn new(settings: Sampling, simd: Simd) -> Self {
        let random = ChaCha8Rng::seed_from_u64(settings.seed);
        Self {
            settings,
            random,
            simd,
            recent: Vec::new(),
            candidates: Vec::new(),
        }
    }

    fn remember(&mut self, token: u32) {
        self.recent.push(token);
        let window = self.settings.repeat_window;
        if self.recent.len() >= 2 * window.max(32) {
            self.recent.drain(..self.recent.len() - window);
        }
    }

    /// Chooses among the tokens that `allowed` accepts, and records the choice. Overwrites `logits`.
    pub(crate) fn sample(
        &mut self,
        logits: &mut [f32],
        allowed: impl Fn(u32) -> bool,
    ) -> Result<u32, Error> {
        self.penalise(logits);
        let Sampling {
            temperature,
            top_p,
            min_p,
            top_k,
            ..
        } = self.settings;
        let best = best(logits, &allowed)?;
        let token = if temperature <= 0.0 {
            best
        } else {
            self.draw(logits, best, &allowed, [temperature, top_p, min_p], top_k)
        };
        self.remember(token);
        Ok(token)
    }

    fn penalise(&self, logits: &mut [f32]) {
        let Sampling {
            repeat_penalty,
            repeat_window,
            frequency_penalty,
            presence_penalty,
            ..
        } = self.settings;
        let window = &self.recent[self.recent.len().saturating_sub(repeat_window)..];
        let mut uses: HashMap<u32, f32> = HashMap::new();
        for token in window {
            *uses.entry(*token).or_default() += 1.0;
        }
        // Each token is changed once, so the map's order does not matter.
        for (token, n) in uses {
            let Some(logit) = logits.get_mut(token as usize) else {
                continue;
            };
            *logit = if *logit > 0.0 {
                *logit / repeat_penalty
            } else {
                *logit * repeat_penalty
            };
            *logit -= frequency_penalty * n + presence_penalty;
        }
    }

    fn draw(
        &mut self,
        logits: &mut [f32],
        best: u32,
        allowed: &impl Fn(u32) -> bool,
        [temperature, top_p, min_p]: [f32; 3],
        top_k: usize,
    ) -> u32 {
        let top = logits[best as usize];
        // Relative to the best: a tiny temperature must not overflow, and a forbidden token may have had a higher
        // logit.
        let relative = |v: f32| {
            if v.is_finite() {
                ((v - top) / temperature).min(0.0)
            } else {
                f32::NEG_INFINITY
            }
        };
        logits.iter_mut().for_each(|v| *v = relative(*v));
        kernels::softmax(self.simd, logits);
        let weights = logits;
        let most = weights[best as usize];
        let mut floor = most * min_p.clamp(0.0, 1.0);
        let list = &mut self.candidates;
        let collect = |floor: f32, list: &mut Vec<(f32, u32)>| {
            list.clear();
            list.extend(
                weights
                    .iter()
                    .enumerate()
                    .map(|(i, w)| (*w, i as u32))
                    .filter(|(w, i)| *w >= floor && allowed(*i)),
            );
            list.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        };
        let kept = if top_k == 0 && top_p >= 1.0 {
            collect(floor, list);
            list.len()
        } else {
            let total: f64 = weights
                .iter()
                .enumerate()
                .filter(|(i, w)| **w >= floor && allowed(*i as u32))
                .map(|(_, w)| f64::from(*w))
                .sum();
            let enough = |list: &[(f32, u32)]| {
                let mut sum = 0.0;
                let by_p = list.iter().position(|(w, _)| {
                    sum += f64::from(*w);
                    sum >= total * f64::from(top_p.clamp(0.0, 1.0))
                });
                let by_k = (top_k > 0 && list.len() >= top_k).then_some(top_k);
                match (by_p.map(|i| i + 1), by_k) {
                    (Some(p), Some(k)) => Some(p.min(k)),
                    (p, k) => p.or(k),
                }
            };
            // A few likely tokens usually suffice; only flat distributions need the whole vocabulary sorted.
            let all = floor;
            floor = floor.max(most * 1e-3);
            collect(floor, list);
            match enough(list) {
                Some(n) => n,
                None => {
                    collect(all, list);
                    enough(list).unwrap_or(list.len())
                }
            }
        };
        let list = &self.candidates[..kept.max(1).min(self.candidates.len())];
        let total: f64 = list.iter().map(|(w, _)| f64::from(*w)).sum();
        // 53 random bits: a number in 0..1 that is identical on every platform.
        let mut left = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
        for (w, token) in list {
            left -= f64::from(*w);
            if left < 0.0 {
                return *token;
            }
        }
        list.last().map_or(best, |(_, token)| *token)
    }
}

/// Returns the most likely allowed token; the smallest id among ties.
fn best(logits: &[f32], allowed: &impl Fn(u32) -> bool) -> Result<u32, Error> {
    let mut best: Option<(f32, u32)> = None;
    for (i, v) in logits.iter().enumerate() {
        if best.is_none_or(|(b, _)| *v > b) && v.is_finite() && allowed(i as u32) {
            best = Some((*v, i as u32));
        }
    }
    let what = "no token can follow: the model's numbers are not finite, or the schema forbids every token";
    best.map(|(_, i)| i)
        .ok_or_else(|| Error::Worker { what: what.into() })
}

#[cfg(test)]
mod tests;
