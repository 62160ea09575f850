//! A text of this program as a separate page.

use crate::document::{Page, Place, page};
use crate::markdown;
use maud::html;
use serde_json::Value;

/// Renders a page with this title from Markdown.
pub fn sheet(title: &str, text: &str) -> String {
    let main = html! { article.thread { (markdown::render(text)) } };
    let (page, _) = page(&Page {
        title,
        main,
        data: &Value::Null,
        place: Place::File,
    });
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_table_and_markup_is_text() {
        let page = sheet(
            "A <b> title",
            "# Found\n\n| way | right |\n|---|---:|\n| <script>x</script> | 90 |\n",
        );
        assert!(page.contains("<table"), "{page}");
        assert!(page.contains("A &lt;b&gt; title"), "{page}");
        assert!(!page.contains("<script>x"), "{page}");
    }
}
