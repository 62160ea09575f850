//! The words that tell what a clause does, by class, in English, German, French, Spanish and Chinese: who speaks, choice,
//! rejection, conclusion, condition, concession, correction. A learned weight of a class holds in all languages.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Classes and their words. `*` ends a stem, `_` is a space.
const CLASSES: &[(&str, &str)] = &[
    (
        "i",
        "i i'd i'll i'm i've me my mine myself we we'd our us ich mir mich mein meine meinem meinen meiner meines \
         wir uns unser* je j'* j ma mon mes moi nous notre yo mi mis nosotros nuestr* 我 我们 本人 个人",
    ),
    (
        "you",
        "you your you'd you're you've you'll du dir dich dein* ihr euch euer* sie ihnen ihre* vous votre vos tu \
         te ton ta usted ustedes tú os vuestr* 你 您 你们 贵",
    ),
    (
        "others",
        "he she they them their his her some others someone people many most member members colleague* critics \
         everyone everybody anyone commenters seat panel expert expert* er andere anderen manche viele leute \
         mitglied* kolleg* kritiker il elle ils elles certains certaines beaucoup d'autres membre membres \
         collègue* on lui él ella ellos ellas algunos algunas muchos otros miembro* compañer* colega* 他 她 他们 有人 \
         有些人 别人 大家 很多人 同事 成员 某些人 一号 二号 三号 老王 小李 用户",
    ),
    (
        "say",
        "say says said think thinks thought argue argues argued suggest suggests suggested claim claims claimed \
         believe believes prefer prefers preferred propose proposes proposed insist* mention* wrote writes points \
         sagt sagen meint denkt denken glaubt glauben schlägt vorgeschlagen behauptet behaupten \
         bevorzugt argumentiert dit disent pense pensent croit croient proposent préfère préfèrent suggère \
         affirme dice dicen piensa piensan cree creen propone proponen prefiere prefieren sugiere afirma 说 认为 觉得 \
         建议 主张 提议 提到 指出 以为",
    ),
    (
        "called",
        "call calls called known_as known termed named named_after looking_for refers_to nennt nennen nennt_sich \
         genannt gesucht gesuchte gemeint bezeichnet bezeichnet_man spricht_man handelt_es_sich gilt lautet heißt \
         s'appelle appelle appellent nommé nomme désigne il_s'agit s'agit cherchez cherches recherché intitulé \
         se_llama llama llaman llamado denomina denominado se_trata trata buscas buscáis refiere conocido conocida \
         叫 叫做 叫作 称为 称作 名为 属于 应填 应该填 位于",
    ),
    (
        "choose",
        "choose chose chosen choosing pick picked picking go going opt opting select selecting take taking settle \
         settled decide decided vote voting voted cast lean leaning land stick sticking side bet wähle wählen \
         gewählt entscheide entscheiden entschieden nehme nehmen nimm greife greifen stimme setze setzen bleibe \
         bleiben tendiere plädiere bin_für choisis choisir choisirais choisi prends prendre prendrais voterais \
         voter opte opter opterais retiens retenir retiendrais penche pencherais pars partir partirais reste \
         resterais mets garde elijo elegir elegiría elige escojo escoger escogería voto votaría opto optaría \
         quedo quedaría inclino decanto decantaría tomaría apuesto iría voy 选 选择 投 投票 投给 倾向 站 挑 采用 首选 优选",
    ),
    (
        "reco",
        "recommend recommending suggesting advise advising empfehle empfehlen würde_empfehlen rate vorschlagen \
         schlage recommande recommander recommanderais conseille conseiller conseillerais préconise recomiendo \
         recomendar recomendaría aconsejo aconsejaría sugiero sugeriría propongo 推荐",
    ),
    (
        "use",
        "use using keep adopt start make put try do stay switch move get buy ship benutze nutze nutzen nehmt \
         verwende verwenden behalte behaltet mach macht setz setzt utilise utilisez utiliser prenez gardez \
         adoptez mettez usa usar utiliza utilice ponga pon mantén mantener coge coged 用 使用 改用 保留",
    ),
    (
        "verdict",
        "answer verdict conclusion recommendation choice decision result final summary bottom winner solution \
         ruling preference position judgment suggestion antwort fazit empfehlung entscheidung wahl ergebnis \
         urteil lösung votum schluss rat réponse recommandation choix décision résultat bilan avis conseil \
         préférence respuesta conclusión recomendación elección decisión veredicto resultado solución consejo \
         preferencia 答案 结论 结果 决定 总结 意见 最终",
    ),
    (
        "so",
        "so therefore thus hence accordingly consequently overall ultimately finally altogether that's_why \
         in_short in_summary all_in_all then which_is_why this_means that_means daher also deshalb somit folglich \
         demnach darum insgesamt unterm_strich kurzum damit letztlich donc ainsi alors finalement bref du_coup \
         par_conséquent au_final en_somme c'est_pourquoi así_que por_tanto por_lo_tanto entonces en_resumen \
         en_definitiva luego por_eso finalmente total de_modo_que 所以 因此 故 综上 总之 总的来说 因而 于是 那么 可见 从而 综合",
    ),
    (
        "but",
        "but however yet though nevertheless nonetheless still aber doch jedoch dennoch trotzdem allerdings \
         sondern mais cependant pourtant toutefois néanmoins pero sin_embargo no_obstante sino aun_así 但 但是 然而 不过 \
         可是 却 而",
    ),
    (
        "though",
        "although while despite whereas even_if even_though granted admittedly sure obwohl zwar auch_wenn während \
         trotz wenngleich freilich bien_que même_si tandis_que malgré certes quoique aunque si_bien mientras \
         a_pesar pese 虽然 尽管 虽说 即使 固然",
    ),
    (
        "if",
        "if unless when provided assuming depends depending in_case otherwise wenn falls sofern außer sonst \
         ansonsten abhängig kommt_darauf_an si sauf à_moins sinon dépend selon quand salvo excepto depende cuando \
         según de_lo_contrario a_menos 如果 若 要是 假如 除非 取决于 否则 的话 看情况",
    ),
    (
        "because",
        "because since as due given reason weil da denn aufgrund wegen grund parce_que car puisque vu raison \
         étant_donné porque ya_que puesto_que dado debido razón pues 因为 由于 理由 原因 毕竟",
    ),
    (
        "not",
        "not no never don't doesn't didn't isn't aren't wasn't won't wouldn't can't cannot couldn't shouldn't \
         without neither nor nicht kein keine keinen keinem keiner keineswegs nie niemals weder noch ohne ne n'* \
         pas jamais aucun aucune ni sans nunca tampoco ningún ninguna jamás sin 不 没 没有 无 别 不要 不能 不会 不是 并非 非 未",
    ),
    (
        "reject",
        "reject avoid skip drop dismiss exclude rule eliminate eliminates eliminated fails fail wrong incorrect \
         against overkill worse worst risky fall out ruled discard vermeide vermeiden scheidet ausscheiden \
         scheiden entfällt falsch verwerfe abraten rate_ab gegen ungeeignet schlechter rejette éviter évitez \
         écarte écarter exclu exclut élimine éliminé faux contre déconseille pire descarto descartar descarta \
         descartado evitar evite rechazo falla incorrecto contra peor desaconsejo 排除 不适合 不合适 淘汰 避免 错误 错 反对 不行 不推荐 \
         不建议 舍弃",
    ),
    (
        "too",
        "too overly excessive zu allzu trop demasiado demasiada 太 过于 过",
    ),
    (
        "best",
        "best right correct ideal optimal appropriate suitable wins win better stronger strongest clearest beste \
         besten bester bestes besser richtig richtige korrekt passend geeignet gewinnt passt meilleur meilleure \
         mieux bon bonne correcte idéal idéale adapté adaptée gagne convient l'emporte mejor mejores correcto \
         correcta adecuado adecuada gana adapta encaja conviene 最好 最佳 最 更 正确 合适 适合 更好 对 胜出 符合",
    ),
    (
        "only",
        "only remaining leaves left remains sole just nur einzig einzige übrig bleibt verbleibt lediglich seul \
         seule seulement unique único única solo sólo queda solamente 只 唯一 只有 剩下 仅 只能 只剩",
    ),
    (
        "be",
        "is are was be would_be it's that's ist sind wäre war est sont serait c'est était es son \
         sería era ser 是 就是 为 即",
    ),
    (
        "modal",
        "would should could can may might must need will shall würde würden sollte sollten könnte kann muss \
         müssen möchte darf devrait devriez peut pourrait faut doit veux voudrais debería deberías deben puede \
         podría debe hay_que quisiera 会 应该 应 可以 能 要 必须 得 宜",
    ),
    (
        "turn",
        "wait actually correction oops hmm mistake sorry reconsider reconsidering revise rather instead scratch \
         moment halt korrektur korrigiere doch_nicht stimmt_nicht quatsch eigentlich verrechnet attends attendez \
         en_fait erreur rectification pardon plutôt espera perdón en_realidad corrección corrijo rectifico \
         me_equivoqué mejor_dicho 等等 不对 更正 抱歉 其实 修正 我错了 重新 改为 应为",
    ),
    (
        "past",
        "first initially earlier previously originally used instinct tempted before had last_time zunächst zuerst \
         anfangs ursprünglich früher vorher erst hatte d'abord initialement auparavant avant premier \
         première_intuition avais al_principio inicialmente antes primero había 起初 最初 一开始 之前 原来 原本 本来 先前 曾",
    ),
    (
        "now",
        "now today currently jetzt heute inzwischen mittlerweile nun maintenant aujourd'hui désormais ahora hoy \
         actualmente ya 现在 目前 如今 今天",
    ),
    (
        "both",
        "both either all three each two equally tie tied equal same beide alle drei jede jeder entweder gleich \
         unentschieden les_deux tous toutes chacun chacune soit égalité ambos ambas cada todos todas igual empate \
         都 两者 两个 各 各有 均 平局 一样",
    ),
    ("or", "or oder ou o 或 或者 还是"),
    ("and", "and und et y e as_well plus 和 与 以及 并"),
    (
        "maybe",
        "maybe perhaps possibly probably likely roughly about around approximately unsure uncertain vielleicht \
         eventuell möglicherweise wohl wahrscheinlich etwa ungefähr rund circa unsicher peut-être probablement \
         environ sans_doute quizá quizás tal_vez probablemente aproximadamente unos unas 也许 可能 大概 或许 大约 约 估计",
    ),
    (
        "cant",
        "unable impossible insufficient unclear don't_know not_enough hard_to kann_nicht unmöglich unklar \
         nicht_genug weiß_nicht impossible_de ne_peux_pas ne_sais_pas incapable imposible no_puedo no_sé incapaz \
         insuficiente 无法 不知道 不清楚 难以 没法 不足",
    ),
    (
        "help",
        "let_me_know feel_free happy_to would_you_like shall_i want_me hope_this if_you'd_like if_you_want do_you \
         lass_mich sag_mir gerne soll_ich möchtest_du möchten_sie wenn_du_magst n'hésitez_pas souhaitez voulez \
         veux_tu si_vous_voulez si_tu_veux dites dis-moi avísame quieres quiere si_quieres dime ¿te_ayudo déjame \
         如果需要 需要我 告诉我 希望 要不要 随时 如有",
    ),
    (
        "more",
        "later additionally revisit consider future später außerdem zusätzlich ensuite aussi plus_tard además \
         también más_adelante después 以后 之后 另外 还 也 将来 后续",
    ),
    (
        "gives",
        "gives give equals makes totals yields comes sum amounts in_total ergibt ergeben beträgt summe gesamt \
         donne donnent fait égale vaut dan resulta suma equivale asciende 等于 共 总共 合计 一共 得到 总计",
    ),
    ("per", "per every pro jeden par chaque por 每"),
    (
        "from",
        "from of between up_to at_least at_most over under than von bis zwischen mindestens höchstens über unter \
         als de entre jusqu'à plus_de moins_de desde hasta más_de menos_de 从 至少 最多 超过 低于 不到 以上 以下",
    ),
    (
        "good",
        "good great nice fine simple simpler cheap cheaper fast faster easy easier reliable solid flexible \
         powerful advantage pros benefit popular gut gute einfach einfacher schnell schneller günstig günstiger \
         zuverlässig vorteil* rapide facile fiable souple avantage* bon_marché puissant bueno buena sencillo \
         rápido fácil barato ventaja* 好 简单 便宜 快 容易 优点 可靠 方便 强大",
    ),
    (
        "bad",
        "bad expensive slow slower complex difficult heavy brittle dangerous drawback cons disadvantage risk cost \
         costs problem schlecht teuer langsam komplex schwer schwierig nachteil* risiko problem* aufwand cher \
         chère lent lente complexe difficile lourd inconvénient* risque* problème* caro cara lento lenta complejo \
         difícil pesado inconveniente* riesgo* desventaja* problema* 慢 复杂 难 缺点 风险 问题 麻烦 危险",
    ),
    (
        "sure",
        "definitely clearly certainly absolutely obviously of_course without_doubt clear klar eindeutig definitiv \
         natürlich sicher selbstverständlich unbedingt clairement évidemment certainement absolument bien_sûr \
         sans_hésiter nettement claramente evidentemente desde_luego por_supuesto sin_duda definitivamente 当然 肯定 \
         一定 显然 明显 毫无疑问 明确",
    ),
    (
        "yes",
        "yes yeah yep yup indeed true agreed ja jawohl jep genau stimmt zutreffend oui ouais exact vrai d'accord \
         sí claro cierto verdadero 是的 行 同意 没错 成立",
    ),
    (
        "no",
        "nope nah false untrue nein nö non falso no_es_cierto 否 不可以 不成立 不同意",
    ),
    (
        "agree",
        "agree agrees support supports stimme_zu recht zustimmen accord estoy_de_acuerdo acuerdo 赞成 支持 说得对",
    ),
    (
        "worth",
        "worth safe legal allowed possible permitted valid enough works work necessary required needed lohnt \
         erlaubt zulässig möglich gültig genügt reicht funktioniert nötig notwendig erforderlich permis sûr légal \
         valable suffit fonctionne nécessaire obligatoire vale seguro permitido posible válido basta funciona \
         necesario obligatorio suficiente 值得 安全 合法 允许 有效 足够 需要 必要",
    ),
    (
        "wait",
        "hold off postpone delay refrain stop abandon warte warten verzichte verzichten lass lassen aufschieben \
         attendre reporter renoncer laisser esperar esperaría aplazar dejar 等 暂缓 推迟 暂时 先别 不急 放弃",
    ),
];

/// Maximum number of tokens of an entry.
pub(super) const TOKENS_MAX: usize = 4;

struct Table {
    whole: BTreeMap<String, &'static str>,
    stems: Vec<(&'static str, &'static str)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        whole: BTreeMap::new(),
        stems: Vec::new(),
    };
    for (class, words) in CLASSES {
        for word in words.split_whitespace() {
            match word.strip_suffix('*') {
                Some(stem) => table.stems.push((stem, class)),
                None => {
                    table.whole.entry(word.replace('_', " ")).or_insert(class);
                }
            }
        }
    }
    table
});

/// Returns the class of an entry: words joined by spaces, or Han characters.
pub(super) fn of(entry: &str) -> Option<&'static str> {
    TABLE.whole.get(entry).copied()
}

/// Returns the class of a word by its stem.
pub(super) fn by_stem(word: &str) -> Option<&'static str> {
    let mut stems = TABLE.stems.iter();
    stems
        .find(|(stem, _)| word.starts_with(stem))
        .map(|(_, class)| *class)
}
