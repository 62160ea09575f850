//! A bar that shows a share.

use maud::{Markup, html};

/// Units of a full bar.
const WHOLE: f64 = 100.0;
/// Units of a mark.
const DUE: f64 = 1.2;

/// Renders a bar of this share of the width, 0 to 1, beside its text. Drawn as SVG, since the page's policy allows
/// styles only by hash and therefore none on elements.
pub(crate) fn bar(share: f64, words: &str) -> Markup {
    marked(share, None, words)
}

/// Renders a bar with a mark at a place of it, 0 to 1.
pub(crate) fn marked(share: f64, mark: Option<f64>, words: &str) -> Markup {
    let within = |share: f64| match share.is_finite() {
        true => share.clamp(0.0, 1.0),
        false => 0.0,
    };
    let width = format!("{:.1}", within(share) * WHOLE);
    html! {
        span.bar {
            svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                rect.track width="100" height="8" {}
                rect.fill width=(width) height="8" {}
                @if let Some(mark) = mark {
                    rect.due x=(format!("{:.1}", within(mark) * (WHOLE - DUE))) width=(DUE) height="8" {}
                }
            }
            span.words { (words) }
        }
    }
}
