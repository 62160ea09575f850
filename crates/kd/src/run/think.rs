//! `kd think`: seats a fast and a rigorous member, lets them answer together, and says how it went.

use super::ask::closing;
use super::here::Here;
use super::stage::Shows;
use super::{attach, choice, first, question, schema, stage, trust};
use crate::args::think::Think;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::clean;

pub(super) fn run(args: Think, here: &Here) -> Result<Exit, Error> {
    let quiet = args.output.quiet;
    if let [_, _, _, more, ..] = &args.members[..] {
        return Err(Error::usage("kd think has two members and an arbiter")
            .because(format!("`{}` would be the fourth", clean::line(more)))
            .next("kd ask --members NAMES … asks any number"));
    }
    if may_choose(&args) {
        choice::ask(here)?;
    }
    stage::check_file(&args.output, here)?;
    let schema = schema::read(args.form.output_schema.as_deref(), here)?;
    let kingdom = trust::open(here, quiet)?;
    kingdom.sweep();
    let mut request = args.request();
    request.terms.output = schema;
    let debate = kingdom.debate(request)?;
    let mut question = question::read("think", &args.question, quiet)?;
    let files = attach::Files {
        command: "think",
        words: &args.question,
        options: &args.attach.files,
        for_a_program: args.output.is_json(),
        quiet,
    };
    let roster = debate.roster();
    let who = (debate.config(), roster.members());
    attach::attach(&files, &mut question, who, kingdom.env())?;
    let prepared = debate.asked(question)?;
    if prepared.is_built_in() && !quiet {
        first::notice(kingdom.layout().is_none(), here);
    }
    let mut opened = None;
    let shows = Shows {
        council: args.council,
        value: args.form.output_schema.is_some(),
    };
    let ended = stage::perform(&args.output, shows, here, stage::UNASKED, || {
        let started = prepared.start()?;
        opened = Some(started.opened);
        started.session.send(started.say)?;
        Ok(started.session)
    });
    let Some(opened) = opened else {
        return ended.map(|ended| ended.exit());
    };
    let ended = ended.inspect_err(|_| opened.discard_unsaid())?;
    if !quiet && !ended.closed {
        closing(&ended.view, &opened.id.0, "kd think --continue", here);
    }
    schema::told(
        ended.exit(),
        args.output.is_json(),
        &ended.view,
        &opened.id.0,
    )
}

/// Returns whether the question leaves open who answers, and a person waits for the answer.
fn may_choose(args: &Think) -> bool {
    let parts = [&args.fast, &args.rigorous, &args.arbiter];
    let named = parts.iter().any(|part| part.is_some())
        || !args.members.is_empty()
        || args.model.model.is_some()
        || args.privacy.private;
    let for_a_program = args.output.is_json() || args.output.quiet;
    let goes_on = args.going.wanted().is_some();
    !named && !for_a_program && !goes_on && !args.question.is_empty()
}
