//! A bar that shows a share.

use maud::{Markup, html};

/// Units of a full bar.
const WHOLE: f64 = 100.0;

/// Renders a bar of this share of the width, 0 to 1, beside its text. Drawn as SVG, since the page's policy allows
/// styles only by hash and therefore none on elements.
pub(crate) fn bar(share: f64, words: &str) -> Markup {
    let share = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let width = format!("{:.1}", share * WHOLE);
    html! {
        span.bar {
            svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                rect.track width="100" height="8" {}
                rect.fill width=(width) height="8" {}
            }
            span.words { (words) }
        }
    }
}
