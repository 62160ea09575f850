//! The project's forums: their posts that repeat a forgotten thread.

use super::elsewhere::Elsewhere;
use crate::env::Env;
use crate::error::UserError;
use crate::forum;
use crate::words::count;
use kd_core::config::Config;
use kd_sql::forum::{ForumTexts, Place, SERVER_KEEPS, numbers};
use kd_store::Layout;
use kd_store::forget::Job;
use std::path::PathBuf;

/// Returns the forums of a project, and the forums that cannot be opened.
pub(super) fn forums(
    config: &Config,
    layout: &Layout,
    env: &Env,
) -> Result<(Vec<ForumTexts>, Vec<Elsewhere>), UserError> {
    let configured = forum::place(None, config, layout, env)?;
    let beside = Place::File(layout.forum_file());
    let mut places = vec![configured];
    if !places.contains(&beside) {
        places.push(beside);
    }
    let (mut forums, mut stays) = (Vec::new(), Vec::new());
    for place in places {
        // None is created here.
        if matches!(&place, Place::File(path) if !path.exists()) {
            continue;
        }
        // Opened again for each search: the file is also read as a whole, which must not happen meanwhile.
        match forum::open(&place, env) {
            Ok(store) => drop(store),
            Err(error) => {
                stays.push(Elsewhere {
                    path: PathBuf::from(place.shown()),
                    why: format!("its posts are not searched: {error}"),
                });
                continue;
            }
        }
        if matches!(place, Place::Server(_)) {
            stays.push(Elsewhere {
                path: PathBuf::from(place.shown()),
                why: SERVER_KEEPS.to_owned(),
            });
        }
        let dirs = env.user_dirs();
        forums.push(ForumTexts::new(
            place,
            dirs.state().ok(),
            layout.forum_logs_folder(),
        ));
    }
    Ok((forums, stays))
}

/// Returns the texts that stay although they repeat forgotten text, with the command that erases them.
pub(super) fn kept<'j>(
    forums: &[ForumTexts],
    jobs: impl Iterator<Item = &'j Job<'j>> + Clone,
) -> Result<Vec<Elsewhere>, UserError> {
    let mut kept = Vec::new();
    for forum in forums {
        let (mut posts, mut texts) = (Vec::new(), 0);
        for job in jobs.clone() {
            let found = forum.repeating(job)?;
            posts.extend(found.posts);
            texts += found.texts;
        }
        posts.sort_unstable();
        posts.dedup();
        let all: Vec<String> = posts.iter().map(i64::to_string).collect();
        let why = match (posts.as_slice(), texts) {
            ([], 0) => continue,
            ([], n) => format!("{} of a forum repeat it", count(n as u64, "text")),
            ([_], 0) => format!("post {} repeats it", numbers(&posts)),
            ([_], n) => format!("post {} and {} repeat it", numbers(&posts), other(n)),
            (_, 0) => format!("posts {} repeat it", numbers(&posts)),
            (_, n) => format!("posts {} and {} repeat it", numbers(&posts), other(n)),
        };
        let later = match all.is_empty() {
            true => String::new(),
            false => format!("; later: kd forum forget {}", all.join(" ")),
        };
        kept.push(Elsewhere {
            path: PathBuf::from(forum.place().shown()),
            why: format!("{why}: --posts erases that{later}"),
        });
    }
    Ok(kept)
}

fn other(texts: usize) -> String {
    count(texts as u64, "other text")
}
