//! `eval.share`: after the verdict, asks a share of the questions also of the best member alone and of samples of it.
//!
//! The verdict has been shown and written. Whatever happens here changes neither it nor the exit code.

use crate::args::deliberate::Deliberate;
use crate::error::Error;
use crate::run::agreed::agreed_after;
use crate::run::eval::live::{GoesOn, Manner, ask as ask_ways};
use crate::run::here::Here;
use crate::run::notices::notice_line;
use crate::run::stage::Played;
use kd_app::Kingdom;
use kd_app::share::{
    Afforded, Consent, REPORT, Reserved, Shared, consent, is_news, keep_consent, may_share,
};
use kd_app::threads::{Layout, Thread, Watching};
use kd_core::config::{Config, EvalConfig};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Notify;

/// Asks the other ways, if the question is one of the share and the user agrees.
pub(super) fn ask(
    (args, here): (&Deliberate, &Here),
    kingdom: &Kingdom,
    config: &Config,
    (layout, folder): (&Layout, &Path),
    played: &Played,
) {
    let settings = kingdom.eval_settings();
    // Another model, time limit or seed than the settings' is for this question alone.
    let is_usual = args.model.is_none() && args.timeout.is_none() && args.seed.is_none();
    if settings.share <= 0.0 || played.stopped || played.closed || !is_usual {
        return;
    }
    let tried = || -> Result<(), Error> {
        let thread = Thread::open_folder(folder)?;
        let shared = kingdom.share(config, layout, &thread, &played.view.report)?;
        let Some(mut shared) = shared else {
            return Ok(());
        };
        if let Err(why) = shared.check() {
            return once_a_day(why, args, here);
        }
        if !agrees(&settings, args, here)? {
            return Ok(());
        }
        match shared.afford(here, &settings)? {
            Afforded::Yes(reserved) => compare(shared, reserved, args, (kingdom, layout, folder)),
            Afforded::No(why) => once_a_day(why, args, here),
        }
    };
    if let Err(error) = tried()
        && !args.output.quiet
    {
        notice_line(&format!("not compared (eval.share): {}", error.what));
    }
}

/// Says why nothing is asked, the first time in a day.
fn once_a_day(why: &str, args: &Deliberate, here: &Here) -> Result<(), Error> {
    if !args.output.quiet && is_news(here)? {
        notice_line(&format!("not compared today (eval.share): {why}"));
    }
    Ok(())
}

/// Asks, in one line and without progress.
fn compare(
    mut shared: Shared,
    reserved: Reserved,
    args: &Deliberate,
    (kingdom, layout, folder): (&Kingdom, &Layout, &Path),
) -> Result<(), Error> {
    // Another window may make the thread private: while the user was asked for consent, or while members are asked.
    let goes_on = || may_share(folder);
    if !goes_on() {
        return Ok(reserved.settle(0.0)?);
    }
    if !args.output.quiet {
        let best = &shared.live.best().name;
        notice_line(&format!(
            "also asked for comparison: {best} alone, and samples of it at the cost of the council (eval.share; Ctrl+C ends it); `{REPORT}` compares",
        ));
    }
    let changed = Arc::new(Notify::new());
    let notify = changed.clone();
    let watching = Watching::new(folder, move || notify.notify_one());
    let goes_on = GoesOn {
        holds: &goes_on,
        changed: watching.is_ok().then_some(&*changed),
    };
    let asked = ask_ways(
        &mut shared.live,
        Some(shared.council),
        Manner::Aside,
        Some(goes_on),
    );
    kingdom.end_shared()?;
    kingdom.unshare_private(layout, folder)?;
    // An end before the last answer is not an error: the question is not compared. What requests in flight cost is unknown
    // then, so that all that was reserved counts as spent.
    if asked?.is_ok() {
        reserved.settle(shared.live.spent().usd())?;
    }
    Ok(())
}

/// Returns whether the user agreed to these settings: asked once, on a terminal.
fn agrees(settings: &EvalConfig, args: &Deliberate, here: &Here) -> Result<bool, Error> {
    match consent(here, settings)? {
        Consent::Given => return Ok(true),
        Consent::Refused => return Ok(false),
        Consent::Unasked => {}
    }
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_terminal || args.output.quiet {
        if !args.output.quiet {
            notice_line(
                "not compared (eval.share): it asks for your consent once; run `kd deliberate` on a terminal",
            );
        }
        return Ok(false);
    }
    notice_line(&format!(
        "eval.share: {} % of your questions are also asked of the best member alone and of samples of it, after the verdict, for at most ${:.2} a day",
        settings.share * 100.0,
        settings.max_usd
    ));
    // A user who stops the question has not answered it.
    let agrees = agreed_after("Ask them, from now on?")?;
    if let Some(agrees) = agrees {
        keep_consent(here, settings, agrees)?;
    }
    Ok(agrees == Some(true))
}
