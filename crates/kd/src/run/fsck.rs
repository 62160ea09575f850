//! `kd fsck`: reports and repairs problems in thread folders.

use super::here::Here;
use crate::args::fsck::Fsck;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use kd_app::fsck::{self, Checked, Finding, FsckRequest};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

pub(super) fn run(args: &Fsck, here: &Here) -> Result<Exit, Error> {
    let request = FsckRequest {
        thread: args.thread.as_deref(),
        all: args.all,
        repair: args.repair,
    };
    let looked = fsck::check(request, here)?;
    let all = || looked.iter().flat_map(|l| &l.report.findings);
    let open = all().filter(|f| f.is_open()).count();
    let mended = all().filter(|f| matches!(f.mended, Some(Ok(_)))).count();
    let mendable = all().filter(|f| f.is_open() && f.remedy.is_some()).count();
    let mut out = crate::out::lines(args.json);
    if args.json {
        let folders: Vec<Value> = looked.iter().map(object).collect();
        let object = json!({"v": kd_core::formats::FSCK.version, "folders": folders, "problems": open, "mended": mended});
        writeln!(out, "{}", json::text(&object, true)?)?;
    } else {
        for one in &looked {
            page(one, here, &mut out)?;
        }
        // If no thread is named, the first report is that of `.kd` and the last that of the branch.
        let threads = looked.len() - if args.thread.is_none() { 2 } else { 0 };
        let mut closing = format!(
            "{}, {}",
            kd_app::words::count(threads as u64, "thread"),
            kd_app::words::count(open as u64, "problem")
        );
        if mended > 0 {
            closing.push_str(&format!(", {mended} mended"));
        }
        if mendable > 0 && !args.repair {
            closing.push_str(&format!(
                "; `kd fsck --repair` repairs {mendable} of them and deletes nothing"
            ));
        }
        writeln!(crate::out::error_lines(), "{closing}")?;
    }
    out.flush()?;
    Ok(if open == 0 { Exit::Done } else { Exit::Error })
}

fn page(looked: &Checked, here: &Here, out: &mut impl Write) -> io::Result<()> {
    if looked.report.findings.is_empty() {
        return Ok(());
    }
    let styles = here.out_styles();
    writeln!(out, "{}", styles.bold(&clean::line(&looked.name)))?;
    for finding in &looked.report.findings {
        let (mark, tail) = match (&finding.mended, &finding.remedy) {
            (Some(Ok(done)), _) => (styles.glyph("✓", "ok"), done.clone()),
            (Some(Err(why)), _) => (styles.glyph("✗", "x"), format!("not repaired: {why}")),
            (None, _) if finding.kind.is_note() => (styles.glyph("·", "-"), String::new()),
            (None, Some(remedy)) => (
                styles.glyph("✗", "x"),
                format!("--repair: {}", remedy.says()),
            ),
            (None, None) => (styles.glyph("✗", "x"), "repair it by hand".to_owned()),
        };
        let file = clean::line(&name(&finding.path));
        writeln!(out, "  {mark} {file}: {}", clean::line(&finding.what))?;
        if !tail.is_empty() {
            writeln!(out, "      {}", styles.dim(&clean::line(&tail)))?;
        }
    }
    Ok(())
}

fn object(looked: &Checked) -> Value {
    let finding = |f: &Finding| {
        let (done, why) = match &f.mended {
            Some(Ok(done)) => (Some(done), None),
            Some(Err(why)) => (None, Some(why.to_string())),
            None => (None, None),
        };
        json!({
            "kind": f.kind.word(),
            "note": f.kind.is_note(),
            "file": name(&f.path),
            "what": f.what,
            "remedy": f.remedy.as_ref().map(fsck::Remedy::says),
            "mended": done,
            "not_mended": why,
        })
    };
    json!({
        "name": looked.name,
        "branch": looked.branch,
        "path": looked.folder,
        "messages": looked.report.messages,
        "findings": looked.report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
