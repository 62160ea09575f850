//! The project's forums in `kd forget`: their posts that repeat a forgotten thread.

use super::elsewhere::Elsewhere;
use crate::error::Error;
use crate::run::here::Here;
use crate::run::trust;
use kd_sql::forum::{ForumTexts, Place, numbers};
use kd_store::Layout;
use kd_store::forget::Job;
use std::path::PathBuf;

/// Returns the forums of a project, and those that cannot be opened.
pub(super) fn forums(
    layout: &Layout,
    here: &Here,
) -> Result<(Vec<ForumTexts>, Vec<Elsewhere>), Error> {
    let config = trust::settings(here, Some(layout))?.config;
    let configured = kd_app::forum::place(None, &config, layout, here)?;
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
        match kd_app::forum::open(&place, here) {
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
                why: "the server's write-ahead log, archives, replicas and backups keep erased posts until they are recycled".to_owned(),
            });
        }
        let dirs = here.user_dirs();
        forums.push(ForumTexts::new(
            place,
            dirs.state().ok(),
            layout.forum_logs_folder(),
        ));
    }
    Ok((forums, stays))
}

/// Returns the posts that repeat what jobs forget and stay, with the command that erases them.
pub(super) fn kept<'j>(
    forums: &[ForumTexts],
    jobs: impl Iterator<Item = &'j Job<'j>> + Clone,
) -> Result<Vec<Elsewhere>, Error> {
    let mut kept = Vec::new();
    for forum in forums {
        let mut posts: Vec<i64> = Vec::new();
        for job in jobs.clone() {
            posts.extend(forum.posts(job)?);
        }
        posts.sort_unstable();
        posts.dedup();
        if posts.is_empty() {
            continue;
        }
        let all: Vec<String> = posts.iter().map(i64::to_string).collect();
        let (s, verb) = if posts.len() == 1 {
            ("", "repeats")
        } else {
            ("s", "repeat")
        };
        kept.push(Elsewhere {
            path: PathBuf::from(forum.place().shown()),
            why: format!(
                "post{s} {} {verb} it: kd forum forget {}",
                numbers(&posts),
                all.join(" ")
            ),
        });
    }
    Ok(kept)
}
