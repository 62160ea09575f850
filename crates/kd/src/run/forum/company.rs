//! Shows users the texts that agents write besides posts: notes, profiles, and a forum's charter and rules.

use super::super::here::Here;
use super::{open, open_any, open_to_create, open_to_write, order, talk};
use crate::args::forum::{Charter, List, Notes, Profile, RulesOf};
use crate::error::Error;
use crate::render::clean;
use kd_app::words::count;
use kd_forum::company::Remember;
use kd_forum::order::Order;
use kd_forum::rules::{self, RULES, Rule};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;

pub(super) fn notes(args: &Notes, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    if args.clear {
        let now = jiff::Timestamp::now();
        site.store
            .remember(&site.forum, &args.name, Remember::Replace, "", now)?;
        return Ok(());
    }
    let notes = site.store.notes(&site.forum, &args.name)?;
    show(&notes, &format!("{} has no notes", args.name))
}

pub(super) fn profile(args: &Profile, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let profile = site.store.profile(&site.forum, &args.name)?;
    show(&profile, &format!("{} has written no profile", args.name))
}

pub(super) fn charter(args: &Charter, here: &Here) -> Result<(), Error> {
    let mut site = match args.text {
        Some(_) => open_to_create(&args.place, &args.secrets, here)?,
        None => open(&args.place, here)?,
    };
    if let Some(text) = &args.text {
        let keep = Some(&args.secrets);
        let text = talk::masked(&site, &talk::body(text)?, keep, here)?;
        let order =
            Order::charter(&site.forum, &text).map_err(|why| Error::usage(why.to_string()))?;
        let by = (args.author.as_str(), args.reason.as_str());
        return order::give(&mut site, by, &order, keep, here);
    }
    let charter = site.store.charter(&site.forum)?;
    show(
        &charter,
        &format!("the forum {} has no charter", site.forum),
    )
}

pub(super) fn rules(args: &RulesOf, here: &Here) -> Result<(), Error> {
    let mut site = open_to_write(&args.place, &args.secrets, here)?;
    if let (Some(key), Some(value)) = (&args.key, &args.value) {
        let order = Order::rule(key, value)
            .map_err(|why| Error::usage(why.to_string()).next("kd forum rules"))?;
        let reason = args.reason.as_deref().unwrap_or_default();
        let by = (args.author.as_str(), reason);
        return order::give(&mut site, by, &order, Some(&args.secrets), here);
    }
    let rules = site.store.rules(&site.forum)?;
    let shown: Vec<&Rule> = match &args.key {
        Some(key) => {
            vec![
                rules::find(key)
                    .map_err(|why| Error::usage(why.to_string()).next("kd forum rules"))?,
            ]
        }
        None => RULES.iter().collect(),
    };
    let mut out = crate::out::lines(args.json);
    if args.json {
        let pairs = shown.iter().map(|rule| (rule.key, rules.value(rule)));
        let pairs: BTreeMap<&str, &str> = pairs.collect();
        let charter = site.store.charter(&site.forum)?;
        let elected: BTreeMap<&str, String> =
            site.store.elected(&site.forum)?.into_iter().collect();
        let all = json!({"v": kd_core::formats::FORUM_RULES.version, "forum": site.forum, "charter": charter, "rules": pairs, "elected": elected});
        writeln!(out, "{all}")?;
        return Ok(());
    }
    for rule in shown {
        let (key, value) = (rule.key, rules.value(rule));
        writeln!(out, "{key:<20} {value:<12} {}", rule.doc)?;
    }
    if args.key.is_none() {
        for (key, value) in site.store.elected(&site.forum)? {
            let value = clean::line(&value);
            writeln!(
                out,
                "{key:<20} {value:<12} a setting changed by a motion; `kd forum undo --list` has its entry"
            )?;
        }
    }
    Ok(())
}

pub(super) fn list(args: &List, here: &Here) -> Result<(), Error> {
    let mut site = open_any(&args.place, here)?;
    let mut out = crate::out::lines(args.json);
    let forums = site.store.forums()?;
    if args.json {
        let mut all = Vec::new();
        for (forum, threads) in forums {
            let rules = site.store.rules(&forum)?;
            let rules: BTreeMap<&str, &str> = rules.set().map(|(r, v)| (r.key, v)).collect();
            all.push(json!({"name": forum, "threads": threads.max(0), "rules": rules}));
        }
        let all = json!({"v": kd_core::formats::FORUM_LIST.version, "forums": all});
        writeln!(out, "{}", kd_app::json::text(&all, false)?)?;
        return Ok(());
    }
    for (forum, threads) in forums {
        let rules = site.store.rules(&forum)?;
        let rules: Vec<String> = rules.set().map(|(r, v)| format!("{}={v}", r.key)).collect();
        let threads = count(threads.max(0) as u64, "thread");
        let line = format!(
            "{:<20} {threads:<14} {}",
            clean::line(&forum),
            rules.join(" ")
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn show(text: &str, none: &str) -> Result<(), Error> {
    let shown = match text.is_empty() {
        true => none.into(),
        false => clean::text(text),
    };
    writeln!(crate::out::stdout(), "{shown}")?;
    Ok(())
}
