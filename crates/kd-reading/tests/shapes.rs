//! Replies by their shape: where the commitment stands, and what the sentences around it are.
#![allow(clippy::unwrap_used)]

use kd_reading::kinds::{self, Kind};
use kd_reading::{Answer, Options, Wanted, read};

/// Returns the option, the side or the number that a reply is read as.
fn said(kind: &str, reply: &str) -> Option<String> {
    let (kind, rest) = kind.split_once(':').unwrap_or((kind, ""));
    let names: Vec<String> = match kind {
        "yes-no" => ["yes", "no"].map(str::to_owned).to_vec(),
        _ => rest.split('|').map(str::to_owned).collect(),
    };
    let labels: Vec<String> = ["A", "B", "C", "D"].map(str::to_owned).to_vec();
    let wanted = match kind {
        "number" => Wanted::Number,
        "text" => Wanted::Short,
        "label" => Wanted::Option(Options::labelled(&names, &labels[..names.len()])),
        _ => Wanted::Option(Options::new(&names)),
    };
    Some(match read(&wanted, reply).ok()?.0 {
        Answer::Option(at) if kind == "label" => labels[at].clone(),
        Answer::Option(at) => names[at].clone(),
        Answer::Text(text) => text,
    })
}

/// Returns the cases that are read otherwise.
fn differing(cases: &[(&str, &str, Option<&str>)]) -> Vec<String> {
    let cases = cases.iter();
    let read = cases.map(|(kind, reply, want)| (said(kind, reply), reply, want));
    read.filter(|(got, _, want)| got.as_deref() != **want)
        .map(|(got, reply, want)| format!("{reply:?}: {got:?}, not {want:?}"))
        .collect()
}

const DAYS: &str = "choice:Monday|Wednesday|Friday";
const DRINKS: &str = "choice:Kaffee|Tee|Kakao";
const TRAINS: &str = "choice:le train|la voiture|l'avion";
const ROOMS: &str = "choice:aula norte|aula sur|biblioteca";
const CITIES: &str = "choice:上海|杭州|成都";
const DRAFTS: &str = "label:Cut the budget|Raise the price|Hire a writer";

#[test]
fn a_verdict_at_the_beginning_stands_whatever_is_said_of_the_others() {
    let cases = [
        (
            DAYS,
            "Friday, easily. Monday clashes with the audit, and Wednesday leaves no time to test.",
            Some("Friday"),
        ),
        (
            DAYS,
            "Monday. Wednesday would be the better day for the office, but the hall is taken.",
            Some("Monday"),
        ),
        (
            DAYS,
            "Monday, since the freeze ends on Sunday and Friday is a holiday. Wednesday is a decent choice too late in the week.",
            Some("Monday"),
        ),
        (
            DAYS,
            "When? Wednesday. On Friday nobody answers the phone. Shall I send the invitation?",
            Some("Wednesday"),
        ),
        (
            DRINKS,
            "Tee, ganz klar. Kaffee wäre auch schön, aber danach schläft keiner, und Kakao bleibt wieder stehen.",
            Some("Tee"),
        ),
        (
            DRINKS,
            "Kakao, ohne zu zögern. Der Tee ist alle. Soll ich gleich Milch holen?",
            Some("Kakao"),
        ),
        (
            TRAINS,
            "Le train, évidemment. La voiture serait un bon choix en été, mais pas sous la neige.",
            Some("le train"),
        ),
        (
            TRAINS,
            "Sans hésiter le train ; avec la voiture vous perdriez deux heures.",
            Some("le train"),
        ),
        (
            ROOMS,
            "Biblioteca, sin duda. El aula norte es demasiado pequeña y en el aula sur hay obras. ¿Os parece bien?",
            Some("biblioteca"),
        ),
        (
            ROOMS,
            "Aula sur. La biblioteca sería una opción muy correcta, pero cierra a las seis.",
            Some("aula sur"),
        ),
        (
            CITIES,
            "杭州,毫无疑问。上海太贵,成都太远。要不要我帮你订票?",
            Some("杭州"),
        ),
        // The reply goes on to another option, or does not decide.
        (DAYS, "Monday. Or Friday.", None),
        (DAYS, "Monday. No, wait: Friday is better.", Some("Friday")),
        (DAYS, "Monday for the team. Friday for the guests.", None),
        (DAYS, "Monday. But honestly, I can't decide.", None),
        (DAYS, "Monday? Too early. Friday? Hm.", None),
        (DRINKS, "Tee. Kaffee ist besser.", None),
        (
            DRINKS,
            "Tee, wenn es kalt ist. Kakao, wenn Kinder da sind.",
            None,
        ),
        (CITIES, "杭州。还是成都更好。", None),
        (DAYS, "Monday\nGood for the office.\nFriday\nGood for", None),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn a_json_reply_is_read_by_its_fields_whatever_their_names() {
    const SIZES: &str = "choice:高|中|低";
    let cases = [
        (
            DAYS,
            r#"["Friday", "Monday is a holiday; on Friday the hall is free"]"#,
            Some("Friday"),
        ),
        (DAYS, r#"["Friday", "Monday"]"#, None),
        (SIZES, r#"[{"ticket": "A-2041", "级别": "中"}]"#, Some("中")),
        (
            "yes-no",
            r#"[{"step": 1, "result": "yes"}, {"answer": "no"}]"#,
            Some("no"),
        ),
        ("yes-no", r#"[{"answer": "yes"}, {"answer": "no"}]"#, None),
        (
            "number",
            r#"{"resultado": "1.250", "motivo": "250 € por cada uno de los 5 pasajeros"}"#,
            Some("1250"),
        ),
        (
            "number",
            r#"{"outcome": "1.250", "reason": "half of two and a half"}"#,
            Some("1.25"),
        ),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn what_a_sentence_only_begins_with_or_asks_is_no_answer() {
    let cases = [
        (
            "number",
            "Préchauffez à 180. À 200, le dessus brunit trop vite.",
            Some("180"),
        ),
        (
            "number",
            "接下来我会先统计最近三十天的全部会话日志，再计算出准确的数值。",
            None,
        ),
        (
            "number",
            "It took 24 hours. That makes 24 in all.",
            Some("24"),
        ),
        (
            "yes-no",
            "这个问题不能一概而论，要看合同。能否把合同发给我看一下？",
            None,
        ),
        (
            DAYS,
            "We need the one who sat behind Monday, who left on Friday. It was in May.",
            None,
        ),
        (
            DAYS,
            "| Criterion | Finding |\n|---|---|\n| Risk | low |\n| **Day** | **Friday** |\n\nMonday would be too early.",
            Some("Friday"),
        ),
        (
            DAYS,
            "I go with Friday. Monday is fine, but the moment two teams need the hall, it is full.",
            Some("Friday"),
        ),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn the_authors_own_choice_stands_wherever_it_is() {
    let cases = [
        (
            DAYS,
            "I'd move it to Friday. Monday is a holiday, and Wednesday has its merits.",
            Some("Friday"),
        ),
        (DAYS, "I'd reconsider Friday once the hall is free.", None),
        (
            DAYS,
            "Without a doubt, Monday: the hall is free. Friday would do as well, but it is dearer.",
            Some("Monday"),
        ),
        (
            DRINKS,
            "Ich würde hier auf Tee setzen. Kaffee ist zu stark, Kakao zu süß.",
            Some("Tee"),
        ),
        (
            DRINKS,
            "Ich würde Kaffee weglassen. Kakao schmeckt allen.",
            None,
        ),
        (
            TRAINS,
            "L'horaire demande le train. La voiture se défend, certes, mais elle reste fatigante.",
            None,
        ),
        (
            TRAINS,
            "Je réserverais le train. L'avion va plus vite, certes.",
            Some("le train"),
        ),
        (
            CITIES,
            "我个人更推荐杭州。上海虽然方便，但是太贵，成都太远。",
            Some("杭州"),
        ),
        (
            DAYS,
            "Friday looks the tidiest on the calendar at first. On a second look it is a holiday. Withdrawn. I go with Monday: it is dull, but free.",
            Some("Monday"),
        ),
        (
            DAYS,
            "Half the team argues for Friday and calls it the best day. I vote for Wednesday; the hall is free.",
            Some("Wednesday"),
        ),
        (
            DAYS,
            "Wednesday has my vote. Friday has its merits and Monday its friends.",
            Some("Wednesday"),
        ),
        (
            DAYS,
            "If I may only keep one, I'd pick Monday, because the others are too late.",
            Some("Monday"),
        ),
        (
            DRINKS,
            "Zuerst war ich für Kaffee. Ich ändere meine Meinung: Ich nehme Tee.",
            Some("Tee"),
        ),
        (
            DRINKS,
            "Der Kaffee hier ist wirklich gut. Trotzdem würde ich Tee nehmen, weil es schon spät ist.",
            Some("Tee"),
        ),
        (
            DRINKS,
            "Kakao ist süß, Kaffee bitter. Meine Stimme geht an den Tee.",
            Some("Tee"),
        ),
        (
            TRAINS,
            "J'étais parti sur la voiture. Je change d'avis : le train.",
            Some("le train"),
        ),
        (
            TRAINS,
            "Si je ne devais en garder qu'un, ce serait long à expliquer. Je vote pour l'avion.",
            Some("l'avion"),
        ),
        (
            ROOMS,
            "El aula norte tiene la mejor pantalla. Aun así voto por la biblioteca, porque cabe todo el mundo.",
            Some("biblioteca"),
        ),
        (
            ROOMS,
            "Me quedo con el aula sur: la norte es fría y la biblioteca cierra pronto.",
            Some("aula sur"),
        ),
        (
            CITIES,
            "上海机会最多。不过我选成都,因为房租便宜。",
            Some("成都"),
        ),
        (
            DRAFTS,
            "My vote: the colleague who wants to raise the price. Cutting the budget hurts twice.",
            Some("B"),
        ),
        (
            DRAFTS,
            "I side with the member who suggests hiring a writer.",
            Some("C"),
        ),
        (
            DRAFTS,
            "(A) reads best at first. It forgets the rent. I change my mind: I go with (B).",
            Some("B"),
        ),
        // Two choices, a condition, a report, a quotation, a denial.
        (
            DAYS,
            "I'd pick Monday for the talks. I'd pick Friday for the dinner.",
            None,
        ),
        (
            DAYS,
            "I'd pick Monday if the hall were free, and Friday if not.",
            None,
        ),
        (DAYS, "My colleague says: \"I vote for Friday\".", None),
        (
            DAYS,
            "I would not pick Friday. Monday and Wednesday are equally good.",
            None,
        ),
        (
            DRINKS,
            "Ich würde Tee nehmen, wenn es kalt ist, und Kakao, wenn Kinder da sind.",
            None,
        ),
        (TRAINS, "Je vote pour le train ou la voiture.", None),
        (
            ROOMS,
            "No voto por la biblioteca. Las otras dos me parecen igual de buenas.",
            None,
        ),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn what_an_elimination_leaves_is_chosen() {
    let cases = [
        (
            DAYS,
            "Monday: the hall is taken.\nFriday: half the team is away.\nWhich leaves one, and everybody is in that day.",
            Some("Wednesday"),
        ),
        (
            DAYS,
            "Monday clashes with the audit, Friday with the fair. That leaves Wednesday.",
            Some("Wednesday"),
        ),
        (
            DRINKS,
            "Kaffee ist alle. Für Kakao fehlt die Milch. Bleibt nur eines.",
            Some("Tee"),
        ),
        (
            TRAINS,
            "La voiture est en panne. L'avion coûte trop cher. Il ne reste plus que le train.",
            Some("le train"),
        ),
        (
            TRAINS,
            "La voiture est en panne, l'avion est complet. Reste le premier.",
            Some("le train"),
        ),
        (
            ROOMS,
            "El aula norte está cerrada. En el aula sur no cabemos. Solo queda una.",
            Some("biblioteca"),
        ),
        (
            CITIES,
            "上海?房价太高,不行。\n成都?离家太远,也不行。\n只剩下一个了,我就选它。",
            Some("杭州"),
        ),
        // What is left is none of the options, or not one of them.
        (
            DAYS,
            "Monday clashes with the audit, Friday with the fair. That leaves one thing: a call.",
            None,
        ),
        (
            DAYS,
            "Monday clashes with the audit. That leaves two.",
            None,
        ),
        (
            DRINKS,
            "Kaffee ist alle. Tee bleibt eine Möglichkeit für später.",
            None,
        ),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn what_is_called_the_best_of_all_is_chosen() {
    let cases = [
        (
            DAYS,
            "All three have their charm: Monday is quiet, Friday is short. With your budget and the fair in mind, Wednesday fits best. Monday is half a day by train from there.",
            Some("Wednesday"),
        ),
        (
            DRINKS,
            "Bei dieser Kälte und so kurz vor dem Schlafengehen spricht alles für Tee. Wenn es wärmer wird, kann man neu überlegen.",
            Some("Tee"),
        ),
        (
            TRAINS,
            "Vu la météo et les travaux, le plus raisonnable est de prendre le train. Rien n'oblige à annuler.",
            Some("le train"),
        ),
        (
            ROOMS,
            "Con cuarenta personas y una sola pantalla, lo más sensato es la biblioteca. Así no hay que mover sillas.",
            Some("biblioteca"),
        ),
        (CITIES, "预算有限,又想离家近,杭州最合适。", Some("杭州")),
        (
            DRAFTS,
            "A forgets the rent and C the taxes. Only B is correct: it counts both.",
            Some("B"),
        ),
        // Best in one respect only, or each in its own.
        (
            DAYS,
            "Monday is best on price. Friday is best on mood.",
            None,
        ),
        (
            DAYS,
            "Monday would be best if the hall were free. It may not be.",
            None,
        ),
        (
            DRINKS,
            "Der Preis spricht für Tee, der Geschmack für Kakao.",
            None,
        ),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn a_side_is_read_from_first_words_votes_and_last_answers() {
    let cases = [
        (
            "yes-no",
            "Yes, as long as the key is rotated first.\n\n1. Rotate it.\n2. Deploy.\n\nShall I write the script?",
            Some("yes"),
        ),
        (
            "yes-no",
            "Nope, not with that timeout. Raise it and my answer would be a yes, but as it stands: no.",
            Some("no"),
        ),
        (
            "yes-no",
            "The sceptic at the table says no because nobody tested the restore. Somebody did. I vote yes.",
            Some("yes"),
        ),
        (
            "yes-no",
            "Nein. Passwörter gehören nicht ins Protokoll, auch nicht „nur zum Testen“. Ja?",
            Some("no"),
        ),
        (
            "yes-no",
            "Ob das geht? Auf jeden Fall. Nein sagen könnte höchstens der Vermieter.",
            Some("yes"),
        ),
        (
            "yes-no",
            "Klar, das klappt! Danach gut angießen.",
            Some("yes"),
        ),
        (
            "yes-no",
            "Certains diront non par principe. Je vote oui.",
            Some("yes"),
        ),
        (
            "yes-no",
            "Sí, es legal: el contrato lo permite y no excluye a nadie.",
            Some("yes"),
        ),
        ("yes-no", "没有错误,没有警告。能发布吗?能。", Some("yes")),
        (
            "yes-no",
            "It depends. If it runs at night, then no. If it runs by day, yes.",
            None,
        ),
        (
            "yes-no",
            "Sure, I can look into that! There is no way this is safe.",
            None,
        ),
        ("yes-no", "Yes. But not today.", None),
        (
            "yes-no",
            "Oui pour la cuisine, non pour la salle de bains.",
            None,
        ),
        ("yes-no", "Ja, aber nur bei Regen. Sonst nein.", None),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn days_hours_and_corrections_do_not_compete_with_a_number() {
    let cases = [
        (
            "number",
            "So the temperature at 9 a.m. is −7 °C.",
            Some("-7"),
        ),
        (
            "number",
            "The wall fell in 1989, on 9 November to be exact.",
            Some("1989"),
        ),
        (
            "number",
            "Die Stadt wurde im Jahr 1871 gegründet; gefeiert wird am 18. Januar.",
            Some("1871"),
        ),
        (
            "number",
            "Llegó a la isla en 1492, el 12 de octubre.",
            Some("1492"),
        ),
        (
            "number",
            "12 Tage.\nNein, Korrektur, ich habe die Feiertage vergessen: 12 − 2 = 10. Es sind 10 Tage.",
            Some("10"),
        ),
        (
            "number",
            "服务器:4 × 320 = 1,280 元\n带宽:220 元\n\n**每月总计:1,500 元**",
            Some("1500"),
        ),
        ("number", "1945. It began in 1939.", Some("1945")),
        ("number", "40. At least 35.", None),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn a_noun_before_a_french_verb_and_its_pronoun_asks_for_a_side() {
    for question in [
        "Le nombre 91 est-il premier ?",
        "La migration a-t-elle un retour en arrière ?",
    ] {
        assert_eq!(kinds::of(question), Kind::YesNo, "{question}");
    }
    for question in [
        "Quand le train part-il ?",
        "Le nombre de pages est-il de combien ?",
        "Le train est-il plus sûr que la voiture ou l'inverse ?",
    ] {
        assert_ne!(kinds::of(question), Kind::YesNo, "{question}");
    }
}

#[test]
fn what_an_answer_is_compared_with_is_no_answer() {
    let cases = [
        (
            "number",
            "Set it to 20. That's half of what you have now, 40.",
            Some("20"),
        ),
        (
            "number",
            "I'd keep the pool at 20 connections. That's well under the limit of 100.",
            None,
        ),
        (
            "number",
            "I'd keep the pool at 20 connections. That's well under the 100 that Postgres allows.",
            None,
        ),
        (
            "number",
            "30 seconds is a sensible timeout. The gateway returns a 504.",
            None,
        ),
        (
            "number",
            "30 Sekunden sind sinnvoll. Das liegt noch unter den 60 s des Gateways.",
            Some("30"),
        ),
        (
            "number",
            "It is 12. That is twice the 6 of last year.",
            Some("12"),
        ),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn a_label_in_lower_case_is_read_where_it_is_marked_as_one() {
    const SHARING: &str = "label:composition|inheritance|code generation";
    let cases = [
        (
            SHARING,
            "My pick is (a). Code generation is a hammer for a bigger nail than this.",
            Some("A"),
        ),
        (
            SHARING,
            "I'd go with option b). Code generation is a hammer for a bigger nail.",
            Some("B"),
        ),
        (
            SHARING,
            "I'd go with option b. Code generation is a hammer for a bigger nail.",
            Some("B"),
        ),
        (
            SHARING,
            "(c) since a generator keeps all of it in step.",
            Some("C"),
        ),
        // The article.
        (SHARING, "Take a generator.", Some("C")),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}

#[test]
fn a_quotation_stays_whole_and_answers_only_in_its_own_sentence() {
    let cases = [
        (
            "text",
            "«Emma» fue escrita por una autora inglesa y se publicó en Londres en diciembre de 1815.",
            Some(
                "«Emma» fue escrita por una autora inglesa y se publicó en Londres en diciembre de 1815",
            ),
        ),
        ("text", "The play is \"Hamlet\".", Some("Hamlet")),
        (
            "text",
            "《静夜思》的作者是李白。他被后人尊称为“诗仙”。",
            None,
        ),
    ];
    assert_eq!(differing(&cases), Vec::<String>::new());
}
