//! Ballots that are not as they should be, in every format: each is an error, a notice, an abstention with its reason,
//! or a name that is not a candidate. None is counted as if nothing were odd.

#![allow(missing_docs, clippy::unwrap_used)]

use kd_vote::{Case, ReadError, find, read_csv, read_json_lines, tally};

/// What a reader does with an irregular file.
enum Does {
    /// Refuses it: the beginning of the error, and a part of what to write instead.
    Refuses(&'static str, &'static str),
    /// Notes it and counts these votes, by plurality.
    Notes(&'static str, &'static [(&'static str, &'static str)]),
    /// Counts it as an abstention.
    Abstains(&'static str),
    /// Names a name that is not a candidate.
    Stranger(&'static str),
}

use Does::{Abstains, Notes, Refuses, Stranger};

fn read(text: &str) -> Result<Case, ReadError> {
    if text.starts_with('{') {
        read_json_lines(text).map(|mut cases| cases.remove(0))
    } else {
        read_csv(text)
    }
}

const ONE_BALLOT: &str = "a voter has one ballot";

#[rustfmt::skip]
const CASES: &[(&str, &str, Does)] = &[
    // A whole ranking in a place for one name.
    ("CSV, choice", "voter,choice\nann,A>B>C\nbob,B>C>A\n", Refuses("line 2: `A>B>C` reads like a ranking", "call the column `ranking`")),
    ("CSV, ranks", "rank1,rank2\nA,B\nB > A,\n", Refuses("line 3: `B > A` reads like a ranking", "`voter,rank1,rank2,rank3`")),
    ("CSV, approvals", "voter,approvals\nann,A\nbob,A>B\n", Refuses("line 3: `A>B` reads like a ranking", "ranking")),
    ("CSV, rounds", "voter,round1\nann,A>B\n", Refuses("line 2: `A>B` reads like a ranking", "ranking")),
    ("JSON, choice", "{\"choice\":\"A\"}\n{\"choice\":\"A>B\"}\n", Refuses("line 2: `A>B` reads like a ranking", "{\"ranks\": [\"A\", \"B\", \"C\"]}")),
    ("JSON, poll", "{\"ballots\":[[\"A\"],[\"A>B\"]]}", Refuses("line 1: `A>B` reads like a ranking", "candidates")),
    ("CSV, ranking with a gap", "ranking\nA>>B\n", Refuses("line 2: `A>>B` has no name on one side", "header")),
    ("CSV, tie with a gap", "rank1,rank2\nA=,B\n", Refuses("line 2: `A=` has no name on one side", "header")),
    // Two names in a place for one.
    ("CSV, approvals with the wrong sign", "voter,approvals\nann,A;B\nbob,\"A,B\"\ncyd,B\n",
        Notes("`A,B` is counted as one candidate, though its parts are candidates too (line 3)", &[("A,B", "1"), ("B", "1")])),
    // A voter with two ballots.
    ("CSV", "voter,choice\nada,A\nbob,A\nada,B\n", Refuses("line 4: `ada` has voted already (line 2)", ONE_BALLOT)),
    ("JSON lines", "{\"voter\":\"ada\",\"choice\":\"A\"}\n{\"member\":\"ada \",\"choice\":\"A\"}\n", Refuses("line 2: `ada` has voted already (line 1)", ONE_BALLOT)),
    ("JSON, voters by number", "{\"voter\":7,\"choice\":\"A\"}\n{\"voter\":7,\"choice\":\"A\"}\n", Refuses("line 2: `7` has voted already", ONE_BALLOT)),
    ("JSON, poll", "{\"ballots\":[{\"voter\":\"ada\",\"choice\":\"A\"},{\"voter\":\"ada\",\"choice\":\"A\"}]}", Refuses("line 1: ballot 2: `ada` has voted already (line 1, ballot 1)", ONE_BALLOT)),
    ("CSV, voters that differ in case", "voter,choice\nada,A\nAda,B\n", Notes("`Ada` and `ada` are counted as two voters (line 3)", &[("A", "1"), ("B", "1")])),
    ("JSON, a voter without a name", "{\"voter\":[1],\"choice\":\"A\"}", Refuses("line 1: `voter` is a list: give a name", "poll")),
    // A ballot that names a candidate twice.
    ("CSV, ranks", "voter,rank1,rank2,rank3\neve,A,A,B\n", Notes("a ballot names `A` twice: only its first place counts (line 2)", &[("A", "1"), ("B", "0")])),
    ("CSV, ranking", "ranking\nA>B=A\n", Notes("a ballot names `A` twice: only its first place counts (line 2)", &[("A", "1"), ("B", "0")])),
    ("CSV, approvals", "approvals\nA;A\n", Notes("a ballot names `A` twice: it is approved once (line 2)", &[("A", "1")])),
    ("CSV, one tie", "rank1\nA=A\n", Notes("a ballot names `A` twice: only its first place counts (line 2)", &[("A", "1")])),
    ("JSON, poll", "{\"ballots\":[[\"B\"],[\"A\",\"A\"]]}", Notes("a ballot names `A` twice: only its first place counts (line 1, ballot 2)", &[("A", "1"), ("B", "1")])),
    ("JSON, scores", "{\"scores\":{\"A\":5,\"A\":2}}", Refuses("line 1: `A` is there twice", "poll")),
    ("CSV, score columns", "score:A,score:A\n5,2\n", Refuses("line 1: the columns `score:A` and `score:A` are for the same thing", "header")),
    // Nothing in a row or a vote.
    ("CSV, empty row", "voter,choice\nada,A\n,\nbob,A\n,\n", Notes("a row without content is left out (line 3; line 5)", &[("A", "2")])),
    ("CSV, no choice", "voter,choice\nada,A\nbob,\n", Abstains("it chooses nobody")),
    ("CSV, no ranking", "voter,ranking\nada,A\nbob,\n", Abstains("it ranks nobody who can win")),
    ("JSON, blank choice", "{\"choice\":\"A\"}\n{\"choice\":\" \"}\n", Abstains("it chooses nobody")),
    ("JSON, no mark", "{\"candidates\":[\"A\"],\"ballots\":[{\"voter\":\"ada\"}]}", Refuses("line 1: ballot 1: it marks nothing", "poll")),
    // One candidate in two spellings.
    ("CSV, choice", "voter,choice\nada,A\nbob,a\n", Refuses("line 3: `a` and `A` (line 2) differ only in case or blanks", "candidates")),
    ("CSV, header of scores", "voter,score:A,score:a\nada,1,2\n", Refuses("line 2: `a` and `A` (line 2) differ only in case", "candidates")),
    ("JSON, blanks", "{\"choice\":\"new  york\"}\n{\"choice\":\"New York\"}\n", Refuses("line 2: `New York` and `new  york` (line 1) differ only", "list all")),
    ("JSON, listed, so both are meant", "{\"candidates\":[\"A\",\"a\"],\"ballots\":[{\"wieght\":2,\"choice\":\"a\"}]}", Notes("`wieght` is not read (line 1, ballot 1)", &[("A", "0"), ("a", "1")])),
    // Names beyond the list.
    ("JSON, choice", "{\"candidates\":[\"A\"],\"ballots\":[{\"choice\":\"A\"},{\"choice\":\"a\"}]}", Stranger("a")),
    ("JSON, in a tie", "{\"candidates\":[\"A\",\"B\"],\"ballots\":[[[\"A\",\"C\"]]]}", Stranger("C")),
    ("JSON, trail", "{\"candidates\":[\"A\"],\"ballots\":[{\"trail\":[\"A\",\"B\"]}]}", Stranger("B")),
    ("JSON, a number beyond numbered names", "{\"candidates\":[\"1\",\"2\"],\"ballots\":[{\"choice\":0}]}", Stranger("0")),
    // Two votes on a ballot, or two kinds of votes.
    ("JSON", "{\"choice\":\"A\",\"ranks\":[\"B\"]}", Refuses("line 1: it has `choice` and `ranks`", "poll")),
    ("JSON, one key twice", "{\"choice\":\"A\",\"choice\":\"B\"}", Refuses("line 1: `choice` is there twice", "poll")),
    ("JSON, several choices", "{\"choice\":[\"A\",\"B\"]}", Refuses("line 1: `choice` is a list: give one name", "poll")),
    ("JSON, two counts", "{\"choice\":\"A\",\"n\":1,\"count\":2}", Refuses("line 1: it has `n` and `count`", "poll")),
    ("CSV", "choice,rank1\nA,B\n", Refuses("line 1: the columns `choice` and `rank1` are two kinds of votes", "header")),
    ("CSV, a column twice", "voter,choice,vote\nada,A,B\n", Refuses("line 1: the columns `choice` and `vote` are for the same thing", "header")),
    ("CSV, a rank twice", "rank1,Rank 1\nA,B\n", Refuses("line 1: the columns `rank1` and `Rank 1` are for the same thing", "header")),
    ("JSON, candidates and a vote", "{\"candidates\":[\"A\"],\"choice\":\"A\"}", Refuses("line 1: this has `candidates` and `choice`", "poll")),
    ("JSON, candidates twice", "{\"candidates\":[\"A\"]}\n{\"candidates\":[\"B\"]}\n", Refuses("line 2: line 1 lists the candidates already", "poll")),
    ("JSON, candidates without names", "{\"candidates\":[[\"A\"]]}\n{\"choice\":\"A\"}\n", Refuses("line 1: `candidates` has an entry that is not a name", "poll")),
    // Numbers that are none, or for nobody.
    ("JSON, score as text", "{\"scores\":{\"A\":\"5\"}}", Refuses("line 1: the score of `A` is a text", "poll")),
    ("JSON, scores of nobody", "{\"scores\":[5,2]}", Refuses("line 1: `scores` needs a number for each candidate (numbers: 2, candidates: 0)", "poll")),
    ("JSON, a score short", "{\"candidates\":[\"A\",\"B\"],\"ballots\":[{\"scores\":[5]}]}", Refuses("line 1: ballot 1: `scores` needs a number for each candidate (numbers: 1, candidates: 2)", "poll")),
    ("CSV, no number", "weight,choice\nNaN,A\n", Refuses("line 2: `NaN` is not a number", "header")),
    ("CSV, a score without end", "score:A\ninf\n", Refuses("line 2: `inf` is not a number", "header")),
    // Columns.
    ("CSV, an unknown column", "voter,wieght,choice\nada,2,A\n", Notes("the column `wieght` is not read (line 1)", &[("A", "1")])),
    ("CSV, ranks in another order", "rank2,rank1,note\nB,A,\n", Notes("the column `note` is not read (line 1)", &[("A", "1"), ("B", "0")])),
];

#[test]
fn nothing_odd_is_counted_in_silence() {
    for (format, text, does) in CASES {
        let which = format!("{format}: {text}");
        let case = read(text);
        match does {
            Refuses(what, hint) => {
                let error = case.expect_err(&which);
                let said = error.to_string();
                assert!(said.starts_with(what), "{which}\n{said}");
                assert!(
                    format!("{said}\n{}", error.hint).contains(hint),
                    "{which}\n{error:?}"
                );
            }
            Notes(what, votes) => {
                let case = case.expect(&which);
                let notices: Vec<String> = case.notices.lines().collect();
                assert!(
                    notices.iter().any(|line| line == what),
                    "{which}\n{notices:?}"
                );
                let count = tally(find("plurality").unwrap(), &case.ballots, &case.rules);
                let names = case.rules.candidates.iter().zip(&count.scores);
                for (name, votes) in *votes {
                    let mut named = names.clone().filter(|(who, _)| who == name);
                    let (_, score) = named.next().expect(&which);
                    assert_eq!(score.as_ref().unwrap().to_string(), *votes, "{which}");
                }
            }
            Abstains(why) => {
                let case = case.expect(&which);
                let count = tally(find("plurality").unwrap(), &case.ballots, &case.rules);
                assert_eq!(count.abstained.len(), 1, "{which}");
                assert_eq!(count.abstained[0].why, *why, "{which}");
            }
            Stranger(who) => {
                let case = case.expect(&which);
                assert_eq!(case.strangers.get(*who), Some(&1), "{which}");
            }
        }
    }
}

#[test]
fn a_regular_file_is_read_without_a_notice() {
    for text in [
        "voter,n,weight,confidence,reliability,family,choice\nada,1,1,.9,.9,x,A\nbob,2,1,.9,.9,y,B -> C\n",
        "ranking\nA > B=C\nC>A\n",
        "rank1,rank2,rank3\nA,,B=C\nOVERVOTE,A,\n",
        "approvals\nA; B\nB\n",
        "round1,round2\nA,A\nA,B\n",
        "score:A,score:B\n1,2\n,0.5\n\n\n",
        "{\"voter\":\"ada\",\"choice\":\"A\"}\n\n{\"n\":3,\"ranks\":[\"B\",[\"A\",\"C\"],null]}\n",
        "{\"candidates\":3,\"ballots\":[[2,0,1],[0]]}",
        "{\"candidates\":[\"A\",\"B\"],\"ballots\":[[1,0],{\"scores\":[1,null]}]}",
        // The poll itself says what a name written twice means.
        "{\"candidates\":[\"A\",\"B\"],\"rules\":{},\"ballots\":[[\"A\",\"A\",\"B\"]]}",
    ] {
        let case = read(text).unwrap();
        let notices: Vec<String> = case.notices.lines().collect();
        assert!(
            notices.is_empty() && case.strangers.is_empty(),
            "{text}\n{notices:?}"
        );
    }
}

#[test]
fn a_ranking_in_one_cell_counts_like_a_column_for_each_rank() {
    let one = read("voter,ranking\nann,A>B>C\nbob,B = C > A\ncyd,C\n").unwrap();
    let each = read("voter,rank1,rank2,rank3\nann,A,B,C\nbob,B=C,A,\ncyd,C,,\n").unwrap();
    for rule in ["schulze", "borda", "irv"] {
        let count = |case: &Case| tally(find(rule).unwrap(), &case.ballots, &case.rules);
        assert_eq!(count(&one), count(&each), "{rule}");
    }
}
