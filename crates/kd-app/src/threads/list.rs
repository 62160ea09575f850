//! Lists of threads, forks below the threads that they came from.

use super::{LeftOut, Lineage, Origin, State, newest, states_now, turns};
use crate::env::Env;
use crate::error::UserError;
use kd_core::{SeatName, ThreadId, Timestamp, display};
use kd_store::{Layout, Place, Thread, fork};

/// Maximum characters of a topic.
const TOPIC_CHARS: usize = 60;

/// A thread in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The thread.
    pub id: ThreadId,
    /// Its branch.
    pub branch: String,
    /// When it was created, as far as that is known.
    pub created_at: Option<Timestamp>,
    /// Messages that can be read.
    pub message_count: usize,
    /// The beginning of the first question.
    pub topic: String,
    /// Whether it is the current thread.
    pub is_current: bool,
    /// The members that were asked last, each with its state.
    pub states: Vec<(SeatName, State)>,
    /// Where it was forked.
    pub fork: Option<Lineage>,
    /// The sealed file from which it was imported.
    pub imported: Option<Origin>,
    /// Whether it is private.
    pub is_private: bool,
    /// Number of listed forks above it.
    pub depth: usize,
}

/// Lists threads of a project, oldest first; a fork follows the thread that it came from. Tells which threads a newer `kd`
/// wrote, which are left out.
///
/// # Errors
/// A thread cannot be read.
pub fn list(layout: &Layout, places: &[Place], env: &Env) -> Result<Vec<Listed>, UserError> {
    let current = layout.current_thread()?.map(|place| place.id);
    let mut left_out = LeftOut::default();
    let mut listed = Vec::new();
    for place in places {
        let Some(thread) = left_out.open(place)? else {
            continue;
        };
        if thread.meta().is_council() {
            let is_current = current.as_ref() == Some(&place.id);
            listed.push(one(place, &thread, is_current)?);
        }
    }
    left_out.tell(env);
    // Of threads of one second the current one is the newest.
    listed.sort_by(|a, b| {
        (a.created_at, a.is_current, &a.id.0).cmp(&(b.created_at, b.is_current, &b.id.0))
    });
    Ok(as_tree(listed))
}

/// Sorts forks below the threads they came from. The tree with the newest thread is the last.
fn as_tree(listed: Vec<Listed>) -> Vec<Listed> {
    let threads: Vec<_> = listed
        .iter()
        .map(|one| (one.id.clone(), one.fork.clone()))
        .collect();
    let mut listed: Vec<Option<Listed>> = listed.into_iter().map(Some).collect();
    // Each tree with the place of its newest thread among all.
    let mut trees: Vec<(usize, Vec<Listed>)> = Vec::new();
    for (depth, at) in fork::tree(&threads) {
        let Some(one) = listed[at].take() else {
            continue;
        };
        let one = Listed { depth, ..one };
        match trees.last_mut().filter(|_| depth > 0) {
            Some((newest, tree)) => {
                *newest = at.max(*newest);
                tree.push(one);
            }
            None => trees.push((at, vec![one])),
        }
    }
    trees.sort_by_key(|(newest, _)| *newest);
    trees.into_iter().flat_map(|(_, tree)| tree).collect()
}

fn one(place: &Place, thread: &Thread, is_current: bool) -> Result<Listed, UserError> {
    let first = thread.head(1)?;
    let newest = newest(thread, 1)?;
    let states = match turns(&newest.messages).last() {
        Some(turn) => states_now(thread, turn)?,
        None => Vec::new(),
    };
    let first = first.messages.first();
    let topic = first.map(|m| m.body.as_str()).unwrap_or_default();
    let topic = topic.lines().find(|line| !line.trim().is_empty());
    let topic = display::line(topic.unwrap_or_default());
    Ok(Listed {
        id: place.id.clone(),
        branch: place.branch.clone(),
        created_at: thread.meta().created().or_else(|| first.map(|m| m.at)),
        message_count: thread.count_readable()?,
        topic: topic.chars().take(TOPIC_CHARS).collect(),
        is_current,
        states,
        fork: thread.meta().lineage(),
        imported: thread.meta().origin(),
        is_private: thread.meta().is_private(),
        depth: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::ThreadId;

    fn thread(id: &str, from: Option<&str>) -> Listed {
        let fork = from.map(|from| Lineage {
            of: ThreadId(from.into()),
            branch: None,
            before: None,
            stage: None,
            messages: 1,
            foreign: false,
        });
        Listed {
            id: ThreadId(id.into()),
            branch: "main".into(),
            created_at: None,
            message_count: 1,
            topic: String::new(),
            is_current: false,
            states: Vec::new(),
            fork,
            imported: None,
            is_private: false,
            depth: 0,
        }
    }

    #[test]
    fn the_tree_with_the_newest_thread_is_the_last() {
        let threads = vec![
            thread("old", None),
            thread("between", None),
            thread("fork", Some("old")),
        ];
        let tree = as_tree(threads);
        let shown: Vec<_> = tree
            .iter()
            .map(|one| (one.id.0.as_str(), one.depth))
            .collect();
        assert_eq!(shown, [("between", 0), ("old", 0), ("fork", 1)]);
    }
}
