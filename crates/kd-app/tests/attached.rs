//! Pictures of questions that one engine asks at the same time.
#![allow(missing_docs, clippy::unwrap_used)] // a test that cannot go on may say so

use kd_app::{Ask, Deliberate, Env, Kingdom, Question, Started, Think};
use kd_core::media::Attachment;
use std::collections::BTreeMap;

/// A host with two scripted members.
fn host(folder: &std::path::Path) -> Kingdom {
    let (home, project) = (folder.join("home"), folder.join("project"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let mut kingdom = Kingdom::open_with(Env::of(variables).in_folder(&project)).unwrap();
    kingdom.configure(|config| {
        for name in ["ada", "bob"] {
            config.agents.entry(name.into()).or_default().backend = "scripted".into();
        }
        config.council.members = vec!["ada".into(), "bob".into()];
    });
    kingdom
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_two_questions_keeps_its_copy_of_the_same_picture() {
    let folder = tempfile::tempdir().unwrap();
    let kingdom = host(folder.path());
    let png = b"\x89PNG\r\n\x1a\nand its pixels".to_vec();
    let picture = Attachment::new("map.png", png).unwrap();
    let question = || Question {
        media: vec![picture.clone()],
        ..Question::new(format!("Where is it?\n\n{}", picture.block()))
    };
    type Way<'w> = &'w dyn Fn() -> Started;
    let ways: [(&str, Way<'_>); 3] = [
        ("ask", &|| kingdom.ask(Ask::default(), question()).unwrap()),
        ("think", &|| {
            kingdom.think(Think::default(), question()).unwrap()
        }),
        ("deliberate", &|| {
            let deliberate = Deliberate::default();
            kingdom.deliberate(deliberate, question()).unwrap()
        }),
    ];
    for (name, start) in ways {
        // Both are open before either of them is said.
        let open = [start(), start()];
        let folders = open.each_ref().map(|started| started.opened.folder.clone());
        for started in open {
            started.answers().await.unwrap();
        }
        for folder in folders {
            let copy = std::fs::read(folder.join(&*picture.copy));
            assert_eq!(copy.unwrap(), *picture.bytes, "{name}");
        }
    }
}
