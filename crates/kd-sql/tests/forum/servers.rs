//! The stores that every test runs on: a file, and a separate schema on a PostgreSQL server.

pub(crate) use crate::postgres_server::{Encryption, postgres_schema, start};
use kd_sql::forum::{ForumStore, Place};
use std::path::{Path, PathBuf};

/// A store that is removed after the test.
pub(crate) struct Site {
    pub(crate) place: Place,
    folder: tempfile::TempDir,
}

impl Site {
    pub(crate) fn open(&self) -> ForumStore {
        ForumStore::open(&self.place, Some(&self.state())).expect("it opens")
    }

    /// Returns the user's state folder, which records the stores that the user created.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }
}

/// Runs a test on every available database.
pub(crate) fn each(test: impl Fn(&Site)) {
    let folder = tempfile::tempdir().expect("a folder");
    test(&Site {
        place: Place::File(folder.path().join("forum.db")),
        folder,
    });
    if let Some(url) = postgres_schema() {
        test(&Site {
            place: Place::Server(url),
            folder: tempfile::tempdir().expect("a folder"),
        });
    }
}

/// Runs a test on files only, with the path and its folder.
pub(crate) fn each_file(mut test: impl FnMut(&Site, &Path, &Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, base) = (folder.path().join("forum.db"), folder.path().to_path_buf());
    let site = Site {
        place: Place::File(path.clone()),
        folder,
    };
    test(&site, &path, &base);
}

/// Changes a store without kd.
pub(crate) fn tamper(site: &Site, sql: &str) {
    match &site.place {
        Place::File(path) => {
            let direct = rusqlite::Connection::open(path).expect("it opens");
            direct.execute_batch(sql).expect(sql);
        }
        Place::Server(url) => {
            let client = postgres::Client::connect(url, postgres::NoTls);
            let done = client.and_then(|mut client| client.batch_execute(sql));
            done.expect(sql);
        }
    }
}
