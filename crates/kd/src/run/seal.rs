//! `kd seal`, `kd verify` and `kd import`.

use super::here::Here;
use crate::args::seal::{Import, Known, Seal, SealCommand, Verify};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::{clip, wrap};
use kd_app::infile;
use kd_app::outfile;
use kd_app::seal;
use kd_app::threads::{Origin, Thread};
use kd_core::formats::{self, Newer};
use kd_core::seal::{BYTES_MAX, PublicKey, Seal as Sealed, SealError, SecretKey, is_head};
use serde_json::{Value, json as object};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Maximum columns of a name in a sealed file, and of an error about the file.
const NAME_COLUMNS_MAX: usize = 40;
const CAUSE_COLUMNS_MAX: usize = 300;
/// Columns of a sentence and of a list of numbers.
const SENTENCE_COLUMNS: usize = 79;

pub(super) fn run(args: &Seal, here: &Here) -> Result<(), Error> {
    let mut out = crate::out::stdout().lock();
    if let Some(SealCommand::Key) = args.command {
        writeln!(out, "{}", own_key(here)?.public())?;
        return Ok(());
    }
    let (mut sealed, forgotten) = match &args.from {
        Some(path) => read(path)?,
        None => of_thread(args, here)?,
    };
    let path = match &args.output {
        Some(path) => path.clone(),
        None => default_name(&sealed.header.thread),
    };
    outfile::check_ending(&path, "-o", "JSON", &["json"])?;
    if !args.force {
        check_unused(&path, here)?;
    }
    if args.hash_only {
        sealed.erase();
    }
    if args.sign {
        sealed.sign(&own_key(here)?).map_err(seal::unsealable)?;
    }
    let bytes = sealed.to_bytes().map_err(seal::unsealable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Error::new(
            "too_large",
            Exit::Error,
            "the thread is too large to be sealed",
        )
        .because(format!("a sealed file has at most {} MiB", BYTES_MAX >> 20)));
    }
    outfile::write(&path, &bytes, here)?;
    if args.json {
        let mut value = told(&sealed, &forgotten);
        value["file"] = path.display().to_string().into();
        writeln!(out, "{}", json::text(&value, true)?)?;
        return Ok(());
    }
    // Devices and pipes already have the document.
    let to_stdout = args
        .output
        .as_deref()
        .is_some_and(|path| path.starts_with("/dev"));
    if !to_stdout {
        let thread = brief(&sealed.header.thread);
        let line = format!("{thread}: sealed in {}", path.display());
        writeln!(out, "{}", clean::line(&line))?;
        write_facts(&sealed, &forgotten, &mut out)?;
    }
    Ok(())
}

/// Returns the user's key. Prints the path of a new key, because nothing else tells the user to keep a copy.
fn own_key(here: &Here) -> Result<SecretKey, Error> {
    let (key, made) = seal::own_key(here)?;
    if let Some(path) = made {
        let made = format!("note: created {}; keep a copy of it", path.display());
        let _ = writeln!(crate::out::stderr(), "{}", clean::line(&made));
    }
    Ok(key)
}

fn of_thread(args: &Seal, here: &Here) -> Result<(Sealed, Vec<u32>), Error> {
    let (_, place) = kd_app::threads::find(here, args.id.as_deref())?;
    let open = Thread::open(&place)?;
    let running = kd_app::threads::running(&open)?;
    if !running.is_empty() {
        let note = "note: members are still answering; the seal has only the saved messages";
        let _ = writeln!(crate::out::stderr(), "{note}");
    }
    Ok(seal::of_thread(&open)?)
}

/// Returns `THREAD.seal.json` in the working folder.
fn default_name(thread: &str) -> PathBuf {
    // The ID may come from a file.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match thread.chars().all(is_plain) && !thread.is_empty() {
        true => format!("{thread}.seal.json").into(),
        false => "thread.seal.json".into(),
    }
}

/// Refuses to replace a file: a new seal of the same thread has another head, which may have been published.
fn check_unused(path: &Path, here: &Here) -> Result<(), Error> {
    let whole = here.folder()?.join(path);
    let folder = whole.parent().map(Path::canonicalize);
    let is_of_kernel =
        folder.is_some_and(|folder| folder.is_ok_and(|at| outfile::is_of_kernel(&at)));
    if is_of_kernel || whole.symlink_metadata().is_err() {
        return Ok(());
    }
    let name = clean::line(&path.display().to_string());
    Err(
        Error::new("exists", Exit::Error, format!("{name} is already there"))
            .next("`--force` replaces it; another name with -o keeps both"),
    )
}

pub(super) fn verify(args: &Verify) -> Result<(), Error> {
    let (sealed, forgotten) = proved(&args.file, &args.known)?;
    let mut out = crate::out::stdout().lock();
    if args.json {
        writeln!(out, "{}", json::text(&told(&sealed, &forgotten), true)?)?;
        return Ok(());
    }
    let thread = brief(&sealed.header.thread);
    let known = &args.known;
    let (proved, open) = match (&known.key, sealed.signer(), &known.head) {
        (Some(_), ..) => (
            UNCHANGED,
            "that the members said this, and when it was sealed",
        ),
        (None, Some(_), _) => (
            UNCHANGED,
            "whose key that is, that the members said this, and when",
        ),
        (None, None, Some(_)) => (
            UNCHANGED,
            "who sealed it, that the members said this, and when",
        ),
        (None, None, None) => (
            "the contents match the head",
            "that nobody changed it: anybody can change an unsigned file and seal it again; `--head HASH` compares the head with one that you know",
        ),
    };
    writeln!(out, "{thread}: {proved}")?;
    write_facts(&sealed, &forgotten, &mut out)?;
    for line in wrap(&format!("not proved: {open}"), SENTENCE_COLUMNS) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

const UNCHANGED: &str = "unchanged since it was sealed";

pub(super) fn import(args: &Import, here: &Here) -> Result<(), Error> {
    let (sealed, _) = proved(&args.file, &args.known)?;
    // Created if missing, as for a question: the recipient of a file may never have asked here.
    let layout = kd_app::council::new_layout(&here.env(args.json))?;
    let (made, already) = seal::import(&layout, &sealed, args.again)?;
    let mut out = crate::out::stdout().lock();
    if args.json {
        let value = object!({
            "v": formats::IMPORTED.version,
            "thread_id": made.id(),
            "already": already,
            "imported": made.meta().origin(),
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
        return Ok(());
    }
    let line = format!(
        "{}: {}imported from {}, with {}",
        made.id(),
        if already { "already " } else { "" },
        brief(&sealed.header.thread),
        kd_app::words::count(sealed.header.messages, "message")
    );
    writeln!(out, "{}", clean::line(&line))?;
    let mut next = format!("see it: kd show {}", made.id());
    if already {
        next.push_str("; another copy: kd import --again FILE");
    }
    let _ = writeln!(crate::out::stderr(), "{}", here.err_styles().dim(&next));
    Ok(())
}

/// Reads and verifies a sealed file, also that it has the known head and is signed by the known key.
fn proved(path: &Path, known: &Known) -> Result<(Sealed, Vec<u32>), Error> {
    let key = known
        .key
        .as_deref()
        .map(PublicKey::parse)
        .transpose()
        .map_err(|error| {
            Error::usage("--key needs a public key")
                .because(error)
                .next("`kd seal key` shows yours")
        })?;
    let head = known.head.as_deref();
    if head.is_some_and(|head| !is_head(head)) {
        return Err(Error::usage("--head needs the head of a sealed file")
            .because("a head has 64 hexadecimal digits in lower case")
            .next("`kd seal` and `kd verify` print it"));
    }
    let (sealed, forgotten) = read(path)?;
    if head.is_some_and(|head| head != sealed.head) {
        let what = format!("{} has another head", shown(path));
        return Err(Error::new("not_proved", Exit::Unproved, what)
            .because(format!("its head is {}", sealed.head)));
    }
    let Some(key) = key else {
        return Ok((sealed, forgotten));
    };
    let why = match sealed.signer() {
        Some(signer) if signer == key => return Ok((sealed, forgotten)),
        Some(signer) => format!("it is signed by {signer}"),
        None => "it is not signed".to_owned(),
    };
    let what = format!("{} is not signed by this key", shown(path));
    Err(Error::new("not_proved", Exit::Unproved, what).because(why))
}

/// Reads and verifies a sealed thread. Returns it with the numbers of its forgotten messages.
fn read(path: &Path) -> Result<(Sealed, Vec<u32>), Error> {
    let shown = shown(path);
    let bytes = infile::read(path, BYTES_MAX).map_err(|e| {
        Error::new("seal", Exit::Error, format!("{shown} could not be read"))
            .because(e)
            .next("give a file that `kd seal` wrote, or `-` for stdin")
    })?;
    let sealed = Sealed::read(&bytes).map_err(|why| match why {
        SealError::TooNew(_) => Error::new(
            "too_new",
            Exit::Error,
            format!("{shown} was sealed by a newer kd"),
        )
        .because(why)
        .next(Newer::HINT),
        why => Error::new(
            "not_proved",
            Exit::Unproved,
            format!("{shown} was changed since it was sealed, or is no sealed thread"),
        )
        .because(clip(&clean::line(&why.to_string()), CAUSE_COLUMNS_MAX)),
    })?;
    let forgotten = seal::check(&sealed)?;
    Ok((sealed, forgotten))
}

fn shown(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "stdin".to_owned(),
        false => clean::line(&path.display().to_string()),
    }
}

/// Shortens a name or time from a sealed file, which anyone may have written, so that no terminal wraps it into
/// something that looks like one of kd's own lines.
fn brief(text: &str) -> String {
    clip(&clean::line(text), NAME_COLUMNS_MAX)
}

/// Describes where a thread was imported from: `imported from council-a94d`.
pub(super) fn origin(origin: &Origin) -> String {
    format!("imported from {}", brief(&origin.of.0))
}

/// Prints what a seal contains.
fn write_facts(sealed: &Sealed, forgotten: &[u32], out: &mut dyn Write) -> Result<(), Error> {
    let header = &sealed.header;
    let holds = format!(
        "{} and {}",
        kd_app::words::count(header.messages, "message"),
        kd_app::words::count(header.events, "event")
    );
    let contents = match sealed.contents() {
        (_, 0) => String::new(),
        (0, _) => ", hashes only".to_owned(),
        (_, erased) => format!(", {erased} of the contents erased"),
    };
    let signed = match sealed.signer() {
        Some(key) => key.to_string(),
        None => "nobody".to_owned(),
    };
    writeln!(out, "  contents:  {holds}{contents}")?;
    if !forgotten.is_empty() {
        let numbers: Vec<String> = forgotten.iter().map(u32::to_string).collect();
        let line = format!("  forgotten: message {}", numbers.join(", "));
        writeln!(out, "{}", clip(&line, SENTENCE_COLUMNS))?;
    }
    writeln!(out, "  head:      {}", sealed.head)?;
    writeln!(out, "  signed by: {signed}")?;
    writeln!(
        out,
        "  sealed at: {}, as the file says",
        brief(&header.sealed_at)
    )?;
    Ok(())
}

fn told(sealed: &Sealed, forgotten: &[u32]) -> Value {
    let (present, erased) = sealed.contents();
    object!({
        "v": formats::SEALED.version,
        "thread_id": sealed.header.thread,
        "unchanged": true,
        "messages": sealed.header.messages,
        "events": sealed.header.events,
        "contents": { "present": present, "erased": erased },
        "forgotten": forgotten,
        "head": sealed.head,
        "sealed_at": sealed.header.sealed_at,
        "signed_by": sealed.signer().map(|key| key.to_string()),
    })
}
