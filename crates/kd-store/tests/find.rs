//! Tests which `.kd` is used, where the search ends, and where a new one is created.
//!
//! Only root can create folders of other users; other users see a notice instead.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::git;
use kd_store::find::{Reason, foreign_owners};
use kd_store::owner::Distrust;
use kd_store::trust::TrustStore;
use kd_store::{Elsewhere, Error, Layout, Search, UserDirs};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user id that nobody has.
const STRANGER: u32 = 64_999;

/// A home directory with folders below and beside it.
struct Stage {
    top: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self {
            top: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(stage.path("home")).unwrap();
        stage
    }

    fn path(&self, below: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(below)
    }

    /// Creates a folder with this mode, and its parents.
    fn folder(&self, below: &str, mode: u32) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn env(&self, base: Option<&Path>) -> impl Fn(&str) -> Option<OsString> + use<> {
        let (home, base) = (self.path("home"), base.map(Path::to_path_buf));
        move |name| match name {
            "HOME" => Some(home.clone().into()),
            "KD_BASE" => base.clone().map(Into::into),
            _ => None,
        }
    }

    fn search(&self, start: &Path) -> Search {
        Layout::search(start, &self.env(None)).unwrap()
    }

    fn found(&self, start: &Path) -> Option<PathBuf> {
        self.search(start).layout.map(|l| l.root().to_path_buf())
    }

    /// Opens a project like the first question does.
    fn create(&self, start: &Path) -> Layout {
        Layout::find_or_create(start, &self.env(None))
            .unwrap()
            .layout
    }
}

/// Gives a folder to the stranger; returns false if that is not permitted.
fn give_away(path: &Path) -> bool {
    let given = chown(path, Some(STRANGER), Some(STRANGER)).is_ok();
    if !given {
        println!("skipped: only the superuser can give a folder away");
    }
    given
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_kd_of_another_user_is_passed_over_and_named() {
    let stage = Stage::new();
    stage.folder("a/.kd", 0o700);
    stage.folder("a/b/.kd", 0o755);
    let work = stage.folder("a/b/c", 0o755);
    if !give_away(&stage.path("a/b/.kd")) {
        return;
    }
    let search = stage.search(&work);
    assert_eq!(search.layout.unwrap().root(), stage.path("a"));
    let [over] = &search.passed_over[..] else {
        panic!("{:?}", search.passed_over);
    };
    assert_eq!(over.root, stage.path("a/b"));
    let line = over.to_string();
    let wanted = format!(
        "{0}/.kd is not used: {0}/.kd belongs to user id 64999; `kd trust` accepts the owner, KD_BASE={0} uses it once",
        stage.path("a/b").display()
    );
    assert_eq!(line, wanted);

    // The `.kd` is not used either if another user owns the folder around it, or a folder on the way down.
    chown(stage.path("a/b/.kd"), Some(0), Some(0)).unwrap();
    assert_eq!(stage.found(&work), Some(stage.path("a/b")));
    for theirs in ["a/b", "a"] {
        chown(stage.path(theirs), Some(STRANGER), None).unwrap();
        let search = stage.search(&work);
        let first = &search.passed_over[0];
        assert_eq!(first.root, stage.path("a/b"));
        let Reason::Distrust(Distrust::Owner(owner)) = &first.why else {
            panic!("{first:?}");
        };
        assert_eq!((&owner.folder, owner.uid), (&stage.path(theirs), STRANGER));
        chown(stage.path(theirs), Some(0), None).unwrap();
    }
}

#[test]
fn an_owner_that_the_user_accepted_counts_at_that_path_alone() {
    let stage = Stage::new();
    let work = stage.folder("work", 0o755);
    stage.folder("work/.kd", 0o755);
    let kd = work.join(".kd");
    let trust = TrustStore::new(&UserDirs::from_env(&stage.env(None))).unwrap();
    if !give_away(&work) || !give_away(&kd) {
        return;
    }
    let foreign = || foreign_owners(&work, &stage.env(None)).unwrap();
    assert_eq!(foreign().users(), [STRANGER].into());
    let folders: Vec<PathBuf> = foreign().owners.into_iter().map(|o| o.folder).collect();
    assert_eq!(folders, [kd.clone(), work.clone()]);
    // A preview is not consent.
    let look = Layout::search_accepting(&work, &stage.env(None), &[foreign()]).unwrap();
    assert_eq!(look.layout.unwrap().root(), work);
    assert_eq!(stage.found(&work), None);
    trust.accept_owners(&work, &foreign().users()).unwrap();
    let opened = Layout::find_or_create(&work, &stage.env(None)).unwrap();
    assert_eq!((opened.layout.root(), opened.created), (&*work, false));
    assert_eq!(mode(&kd), 0o755, "it is not ours to close");
    assert!(!kd.join(".gitignore").exists());
    // Another owner is not accepted, whether of the `.kd` or of a folder on the way.
    for folder in [&kd, &work] {
        chown(folder, Some(STRANGER + 1), None).unwrap();
        assert_eq!(stage.found(&work), None, "{}", folder.display());
        chown(folder, Some(STRANGER), None).unwrap();
    }
    assert_eq!(stage.found(&work), Some(work.clone()));
    // A copy is not accepted, and neither is the same folder under another name.
    let moved = stage.path("moved");
    fs::rename(&work, &moved).unwrap();
    assert_eq!(stage.found(&moved), None);
    fs::rename(&moved, &work).unwrap();
    symlink(&work, stage.path("link")).unwrap();
    assert_eq!(stage.found(&stage.path("link")), Some(work.clone()));
    trust.revoke(&work).unwrap();
    assert_eq!(stage.found(&work), None);
}

#[test]
fn an_accepted_owner_does_not_accept_a_folder_that_others_can_write_to() {
    let stage = Stage::new();
    let work = stage.folder("work", 0o755);
    stage.folder("work/.kd", 0o755);
    let trust = TrustStore::new(&UserDirs::from_env(&stage.env(None))).unwrap();
    let own = rustix::process::geteuid().as_raw();
    let users = [own, STRANGER].into();
    trust.accept_owners(&work, &users).unwrap();
    for given in [false, true] {
        if given && !(give_away(&work) && give_away(&work.join(".kd"))) {
            return;
        }
        assert_eq!(stage.found(&work), Some(work.clone()));
        for (folder, bits, counts) in [
            ("work/.kd", 0o775, false),
            ("work/.kd", 0o757, false),
            ("work/.kd", 0o1777, false),
            ("work", 0o775, false),
            ("work", 0o757, false),
            ("work", 0o1777, true),
        ] {
            if !given && bits == 0o775 {
                continue; // The group may be the user's private one.
            }
            stage.folder(folder, bits);
            assert_eq!(stage.found(&work).is_some(), counts, "{folder} {bits:o}");
            let refused = foreign_owners(&work, &stage.env(None)).is_err();
            assert_eq!(refused, !counts, "{folder} {bits:o}");
            if !counts {
                let line = stage.search(&work).passed_over[0].to_string();
                let option = if folder.ends_with(".kd") { "-R " } else { "" };
                let chmod = format!("`chmod {option}go-w {}`", stage.path(folder).display());
                assert!(
                    line.contains(&chmod) && line.contains("`kd trust`"),
                    "{line}"
                );
            }
            stage.folder(folder, 0o755);
        }
    }
}

#[test]
fn what_others_can_write_to_does_not_count_and_a_sticky_folder_on_the_way_does() {
    let stage = Stage::new();
    let work = stage.folder("a/b/c", 0o755);
    stage.folder("a/b/.kd", 0o755);
    assert_eq!(stage.found(&work), Some(stage.path("a/b")));
    for (folder, bits, counts) in [
        ("a/b/.kd", 0o757, false),
        ("a/b/.kd", 0o1777, false),
        ("a/b", 0o777, false),
        ("a/b", 0o1777, true),
        ("a", 0o777, false),
        ("a", 0o1777, true),
        // Below the `.kd`, where nobody can reach it.
        ("a/b/c", 0o777, true),
    ] {
        stage.folder(folder, bits);
        let found = stage.found(&work) == Some(stage.path("a/b"));
        assert_eq!(found, counts, "{folder} {bits:o}");
        stage.folder(folder, 0o755);
    }
    // A group with other members; the tests of `owner` cover a user's private group.
    if chown(stage.path("a/b/.kd"), None, Some(STRANGER)).is_ok() {
        stage.folder("a/b/.kd", 0o770);
        let search = stage.search(&work);
        let line = search.passed_over[0].to_string();
        assert!(
            line.contains("can be written to by the group 64999"),
            "{line}"
        );
    }
}

#[test]
fn what_a_kd_holds_must_be_the_users_own_too() {
    let stage = Stage::new();
    let work = stage.folder("work", 0o755);
    let kd = stage.folder("work/.kd", 0o755);
    for folder in ["roles", "forum", "forum/agents", "branches", "archive"] {
        stage.folder(&format!("work/.kd/{folder}"), 0o755);
    }
    for file in [
        "config.json",
        "config.local.json",
        "memory.json",
        "current",
        "forum.db",
    ] {
        fs::write(kd.join(file), "{}").unwrap();
        fs::set_permissions(kd.join(file), Permissions::from_mode(0o644)).unwrap();
    }
    let inside = || fs::read_dir(&kd).unwrap().map(|item| item.unwrap().path());
    let agents = kd.join("forum/agents");
    let own = fs::metadata(&kd).unwrap().uid();
    for path in inside().chain([agents]) {
        assert_eq!(stage.found(&work), Some(work.clone()));
        let rights = mode(&path);
        fs::set_permissions(&path, Permissions::from_mode(rights | 0o002)).unwrap();
        assert_eq!(stage.found(&work), None, "{} for everyone", path.display());
        assert!(foreign_owners(&work, &stage.env(None)).is_err());
        // Nobody else can reach it.
        stage.folder("work/.kd", 0o700);
        assert_eq!(stage.found(&work), Some(work.clone()), "{}", path.display());
        stage.folder("work/.kd", 0o755);
        fs::set_permissions(&path, Permissions::from_mode(rights)).unwrap();
        if give_away(&path) {
            assert_eq!(stage.found(&work), None, "{} of another", path.display());
            let users = foreign_owners(&work, &stage.env(None)).unwrap().users();
            assert_eq!(users, [STRANGER].into());
            chown(&path, Some(own), None).unwrap();
        }
    }
}

#[test]
fn a_link_counts_only_where_kd_base_says_so() {
    let stage = Stage::new();
    stage.folder("real/.kd", 0o700);
    let work = stage.folder("work", 0o755);
    symlink(stage.path("real/.kd"), work.join(".kd")).unwrap();
    let search = stage.search(&work);
    assert_eq!(search.layout, None);
    let line = search.passed_over[0].to_string();
    assert!(line.ends_with(&format!(
        "it is a link; to use it anyway, set KD_BASE={}",
        work.display()
    )));
    let named = Layout::find(&work, &stage.env(Some(&work))).unwrap();
    assert_eq!((named.root(), named.is_elsewhere()), (&*work, false));

    assert!(search.passed_over.len() == 1 && named.elsewhere().is_none());

    // Nothing is created through it either, even if it leads nowhere.
    for target in [stage.path("real/.kd"), stage.path("nowhere")] {
        fs::remove_file(work.join(".kd")).unwrap();
        symlink(&target, work.join(".kd")).unwrap();
        let layout = stage.create(&work);
        assert!(layout.root().starts_with(stage.path("home/.local/share")));
        assert!(matches!(layout.elsewhere(), Some(Elsewhere::PassedOver(_))));
        assert!(!stage.path("nowhere").exists());
    }
}

#[test]
fn kd_base_is_used_as_it_is() {
    let stage = Stage::new();
    let base = stage.folder("base", 0o777);
    stage.folder("base/.kd", 0o775);
    give_away(&base.join(".kd"));
    let env = stage.env(Some(&base));
    let opened = Layout::find_or_create(&stage.path("home"), &env).unwrap();
    assert_eq!(
        (opened.layout.root(), opened.passed_over.len()),
        (&*base, 0)
    );
    assert_eq!(
        mode(&base.join(".kd")),
        0o775,
        "its rights are the user's business"
    );
}

#[test]
fn the_search_ends_at_the_top_of_the_checkout_and_at_home() {
    let stage = Stage::new();
    stage.folder("home/all/.kd", 0o700);
    let app = stage.folder("home/all/app", 0o755);
    let deep = stage.folder("home/all/app/src/deep", 0o755);
    git(&app, &["init", "-q", "-b", "main"]);
    let search = stage.search(&deep);
    assert_eq!(search.layout, None);
    let line = search.passed_over[0].to_string();
    let (all, top) = (stage.path("home/all"), app.display());
    assert_eq!(
        line,
        format!(
            "{0}/.kd is not used: the search ends at {top}; to use it anyway, set KD_BASE={0}",
            all.display()
        )
    );
    assert_eq!(stage.create(&deep).root(), app);
    assert_eq!(stage.search(&deep).passed_over, [], "said once is enough");

    // The home directory has its own `.kd`, to which no project below belongs; and nothing above it counts.
    stage.folder(".kd", 0o700);
    let notes = stage.folder("home/notes", 0o755);
    assert_eq!(stage.found(&notes), None);
    stage.folder("home/.kd", 0o700);
    assert_eq!(stage.found(&notes), None);
    let line = stage.search(&notes).passed_over[0].to_string();
    assert_eq!(
        line,
        format!(
            "{0}/.kd is not used: the home folder is not a project for the folders below it; to use it anyway, set KD_BASE={0}",
            stage.path("home").display()
        )
    );
    assert_eq!(stage.found(&stage.path("home")), Some(stage.path("home")));
    assert_eq!(stage.create(&notes).root(), notes);
    // It is still on the way: anyone who can write to it can replace what is below.
    stage.folder("home", 0o777);
    assert_eq!(stage.found(&notes), None);
    stage.folder("home", 0o755);
    assert_eq!(
        stage.found(&stage.folder("beside", 0o755)),
        Some(stage.path(""))
    );
}

#[test]
fn the_search_ends_where_another_disk_begins() {
    let stage = Stage::new();
    stage.folder(".kd", 0o700);
    let disk = stage.folder("disk", 0o755);
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs"])
        .arg(&disk)
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        println!("skipped: only the superuser can mount a disk");
        return;
    }
    let work = stage.folder("disk/work", 0o755);
    let found = stage.found(&work);
    assert!(
        Command::new("umount")
            .arg(&disk)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(found, None);
}

#[test]
fn home_and_shared_folders_keep_their_threads_in_the_users_data() {
    let stage = Stage::new();
    let home = stage.path("home");
    symlink(&home, stage.path("link")).unwrap();
    let shared = stage.folder("shared", 0o1777);
    let data = stage.path("home/.local/share/kd/projects");
    for start in [home.clone(), stage.path("link"), stage.path(""), shared] {
        let layout = stage.create(&start);
        assert!(layout.root().starts_with(&data), "{}", start.display());
        assert!(matches!(layout.elsewhere(), Some(Elsewhere::TooWide(_))));
        assert!(!start.join(".kd").exists());
        assert_eq!(mode(&layout.kd()), 0o700);
        // Found there again, with the reason.
        assert_eq!(stage.create(&start), layout);
        assert_eq!(Layout::find(&start, &stage.env(None)).unwrap(), layout);
    }
    assert_eq!(fs::read_dir(&data).unwrap().count(), 3, "the link is home");

    // A project below is not affected, even if the home directory is a checkout of dotfiles.
    let notes = stage.folder("home/notes", 0o755);
    assert_eq!(stage.found(&notes), None);
    assert_eq!(stage.create(&notes).root(), notes);
    git(&home, &["init", "-q", "-b", "main"]);
    let more = stage.folder("home/more", 0o755);
    assert_eq!(stage.create(&more).root(), more);
    assert!(stage.create(&home).is_elsewhere());
}

#[test]
fn without_a_data_folder_the_reason_is_told() {
    let stage = Stage::new();
    let shared = stage.folder("shared", 0o1777);
    let error = Layout::find_or_create(&shared, &|_| None).unwrap_err();
    assert!(matches!(error, Error::NoHome { .. }), "{error}");
}

#[test]
fn nothing_is_made_in_a_folder_that_others_can_change() {
    let stage = Stage::new();
    let open = stage.folder("open", 0o777);
    let layout = stage.create(&open);
    let why = layout.elsewhere().unwrap().to_string();
    assert_eq!(
        why,
        format!("{} can be written to by everyone", open.display())
    );
    assert!(!open.join(".kd").exists());
    let theirs = stage.folder("theirs", 0o755);
    if give_away(&theirs) {
        let layout = stage.create(&theirs);
        let why = layout.elsewhere().unwrap().to_string();
        assert_eq!(
            why,
            format!("{} belongs to user id 64999", theirs.display())
        );
    }
}

#[test]
fn a_kd_is_for_the_user_alone_and_kept_out_of_git_also_if_it_was_there() {
    let stage = Stage::new();
    let ignored = |root: &Path| fs::read_to_string(root.join(".kd/.gitignore"));
    let new = stage.folder("new", 0o755);
    stage.create(&new);
    let old = stage.folder("old", 0o755);
    stage.folder("old/.kd", 0o755);
    // Searching changes nothing.
    assert_eq!(stage.found(&old), Some(old.clone()));
    assert_eq!(mode(&old.join(".kd")), 0o755);
    stage.create(&old);
    for root in [&new, &old] {
        assert_eq!(mode(&root.join(".kd")), 0o700, "{}", root.display());
        assert!(ignored(root).unwrap().contains("*.jsonl"));
    }
    // Missing lines are added below the user's own, once, except those that the user negated.
    let ours = ignored(&new).unwrap();
    for mine in [
        "mine",
        "mine\n",
        "",
        "!*.jsonl\n# *.log\n",
        &ours.replace("forum.db*\n", ""),
    ] {
        fs::write(old.join(".kd/.gitignore"), mine).unwrap();
        stage.create(&old);
        let text = ignored(&old).unwrap();
        assert!(text.starts_with(mine), "{text}");
        for line in ours
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let taken_back = mine.lines().any(|one| one.strip_prefix('!') == Some(line));
            assert_eq!(
                text.lines().any(|one| one == line),
                !taken_back,
                "{line}: {text}"
            );
        }
        stage.create(&old);
        assert_eq!(ignored(&old).unwrap(), text);
    }
}

/// A `.git` from an archive cannot make a folder part of another project.
#[test]
fn a_git_pointer_is_believed_only_if_the_other_side_points_back() {
    let stage = Stage::new();
    let mine = stage.folder("home/mine", 0o755);
    git(&mine, &["init", "-q", "-b", "main"]);
    git(&mine, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let linked = stage.path("home/linked");
    let args = ["worktree", "add", "-q", "-b", "side"];
    git(&mine, &[&args[..], &[linked.to_str().unwrap()]].concat());
    let kd = stage.folder("home/mine/.kd", 0o700);
    fs::write(kd.join("config.json"), "{}").unwrap();
    assert_eq!(stage.found(&linked), Some(mine.clone()));

    let entry = mine.join(".git/worktrees/linked");
    let hostile = stage.folder("home/hostile", 0o755);
    let text = |path: &Path| path.display().to_string();
    let put = |name: &str, content: &str| {
        let path = hostile.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    // A link to the git folder of another project, and a file that names it.
    fs::create_dir_all(&hostile).unwrap();
    std::os::unix::fs::symlink(mine.join(".git"), hostile.join(".git")).unwrap();
    assert_eq!(stage.found(&hostile), None);
    fs::remove_file(hostile.join(".git")).unwrap();
    put(".git", &format!("gitdir: {}\n", text(&mine.join(".git"))));
    assert_eq!(stage.found(&hostile), None);
    // A file that names the entry of another worktree.
    put(".git", &format!("gitdir: {}\n", text(&entry)));
    assert_eq!(stage.found(&hostile), None);
    // A folder that names the shared folder of another repository, and itself as its worktree.
    fs::remove_file(hostile.join(".git")).unwrap();
    put(".git/HEAD", "ref: refs/heads/main\n");
    put(".git/commondir", &text(&mine.join(".git")));
    put(".git/gitdir", &text(&hostile.join(".git")));
    assert_eq!(stage.found(&hostile), None);
    // A repository that claims the other as its own worktree.
    fs::remove_file(hostile.join(".git/commondir")).unwrap();
    put(".git/worktrees/x/gitdir", &text(&mine.join(".git")));
    put(".git/worktrees/y/gitdir", &text(&linked.join(".git")));
    assert_eq!(stage.found(&hostile), None);
    // With its own `.kd`, it has its own configuration.
    put(".git/commondir", &text(&mine.join(".git")));
    stage.folder("home/hostile/.kd", 0o700);
    let own = Layout::find(&hostile, &stage.env(None)).unwrap();
    assert_eq!(own.config_file(), hostile.join(".kd/config.json"));

    // A worktree that others can write to does not count.
    stage.folder("home/mine/.kd", 0o777);
    assert_eq!(stage.found(&linked), None);
    stage.folder("home/linked/.kd", 0o700);
    let own = Layout::find(&linked, &stage.env(None)).unwrap();
    assert_eq!(own.config_file(), linked.join(".kd/config.json"));
}

#[test]
fn what_a_git_folder_holds_is_read_up_to_a_bound() {
    let stage = Stage::new();
    let work = stage.folder("work", 0o755);
    let pipe = |path: &Path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    pipe(&work.join(".git"));
    assert_eq!(stage.found(&work), None);
    fs::remove_file(work.join(".git")).unwrap();
    let git_dir = stage.folder("work/.git", 0o755);
    stage.folder("work/.kd", 0o700);
    for name in ["HEAD", "commondir"] {
        for target in ["/dev/zero", "pipe"] {
            fs::write(git_dir.join("HEAD"), "ref: refs/heads/topic\n").unwrap();
            let path = git_dir.join(name);
            let _ = fs::remove_file(&path);
            if target == "pipe" {
                pipe(&path);
            } else {
                symlink(target, &path).unwrap();
            }
            // Its branch may be unknown, but the search ends.
            let found = Layout::search(&work, &stage.env(None));
            assert!(
                found.is_ok() || name == "HEAD",
                "{name} {target}: {found:?}"
            );
            fs::remove_file(&path).unwrap();
        }
    }
    // The oldest form of HEAD.
    fs::remove_file(git_dir.join("HEAD")).unwrap();
    symlink("refs/heads/old", git_dir.join("HEAD")).unwrap();
    assert_eq!(stage.search(&work).layout.unwrap().branch(), "old");
}
