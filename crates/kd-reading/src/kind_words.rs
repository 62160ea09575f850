//! Words that show the kind of a question, by class, in English, German, French and Spanish; Chinese has its own
//! phrases. Words are separated by spaces, phrases by bars.

/// Returns whether a table contains a word.
pub(super) fn has(table: &str, word: &str) -> bool {
    !word.is_empty() && table.split_whitespace().any(|w| w == word)
}

/// Returns whether a table contains a word, ignoring accents: `annee` for `année`.
pub(super) fn has_loose(table: &str, word: &str) -> bool {
    has(table, word)
        || word.is_ascii()
            && table
                .split_whitespace()
                .any(|w| !w.is_ascii() && without_accents(w) == word)
}

fn without_accents(word: &str) -> String {
    word.chars()
        .map(|c| match c {
            'à' | 'á' | 'â' | 'ä' => 'a',
            'é' | 'è' | 'ê' | 'ë' => 'e',
            'í' | 'î' | 'ï' => 'i',
            'ó' | 'ô' | 'ö' => 'o',
            'ú' | 'û' | 'ü' | 'ù' => 'u',
            'ñ' => 'n',
            'ç' => 'c',
            c => c,
        })
        .collect()
}

/// Returns whether a text contains one of the phrases of a table.
pub(super) fn any_in(table: &str, text: &str) -> bool {
    table.split('|').any(|phrase| text.contains(phrase.trim()))
}

/// Text that may precede a question: polite phrases, and words that join sentences.
pub(super) const LEADS: &str = "please|pls|plz|hi|hello|hey|hi all|hi team|dear all|dear assistant|quick question|question|a question|can you tell me|\
    could you tell me|could you please tell me|can you please tell me|can anyone tell me|do you know|do you happen to know|i want to know|i'd like to know|\
    i would like to know|i need to know|i was wondering|wondering|just curious|any idea|ok so|ok|okay|so|and|but|also|now|then|well|\
    kindly|can you|could you|would you|would you please|can you please|could you please|help me|i need you to|you must|remind me|homework|context|\
    bitte|hallo|guten tag|moin|liebe alle|liebes team|kurze frage|frage|kannst du mir sagen|können sie mir sagen|könnt ihr mir sagen|\
    weißt du|wissen sie|ich wüsste gern|ich möchte wissen|kannst du mir|könntest du mir|können sie mir|kannst du|könntest du|können sie|könnten sie|könntest du bitte|und|aber|also|mal|dann|\
    bonjour|salut|s'il vous plaît|s'il te plaît|svp|stp|question|une question|petite question|peux-tu me dire|pouvez-vous me dire|pourriez-vous me dire|\
    sais-tu|savez-vous|tu sais|j'aimerais savoir|je voudrais savoir|peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|peux-tu me|pouvez-vous me|alors|et|mais|donc|\
    hola|buenas|buenos días|por favor|porfa|pregunta|una pregunta|me puedes decir|me podrías decir|puedes decirme|podrías decirme|¿me puedes decir|\
    sabes|sabéis|quiero saber|quisiera saber|necesito saber|puedes|podrías|podéis|y|pero|entonces";

/// Words that ask how many.
pub(super) const HOW_MANY: &str = "combien wieviel wieviele wievielen wievielte cuánto cuánta cuántos cuántas cuanto cuanta cuantos cuantas";
/// Adjectives of measure after "how" and "wie".
pub(super) const MEASURES: &str = "many much old tall far high deep fast long heavy wide big large hot cold thick late likely strong warm \
    viel viele vielen alt hoch weit groß schwer tief schnell lang lange breit teuer warm heiß kalt oft spät dick";
/// Words that ask when.
pub(super) const WHEN: &str = "when when's wann quand cuándo cuando";
/// Words that ask for one of several, or for a thing.
pub(super) const WHICH: &str = "which what what's whats was welche welcher welches welchen welchem quel quelle quels quelles lequel laquelle lesquels lesquelles qu' que \
    qué que cuál cuales cuáles cual qual qu'est-ce wie's";
/// Who, where and why: open text.
pub(super) const OPEN_WORDS: &str = "who who's whose whom where why worum wofür wogegen wovon wer wen wem wessen wo wohin woher warum wieso weshalb wozu worin woran wodurch womit \
    qui où pourquoi quién quiénes dónde adónde quien donde";
/// How.
pub(super) const HOW: &str = "how wie comment cómo como";

/// Verbs that begin a yes/no question.
pub(super) const AUXILIARIES: &str = "is isn't are aren't was wasn't were weren't do does doesn't don't did didn't can can't cannot could couldn't will won't \
    would wouldn't should shouldn't has hasn't have haven't had may must mustn't shall am might \
    ist sind war waren hat haben hatte hatten kann können könnte könnten soll sollen sollte sollten muss müssen müsste darf dürfen dürfte wird werden würde würden \
    gibt gab lohnt stimmt reicht braucht brauche brauchen geht gilt funktioniert macht liegt gehört enthält besteht unterstützt wurde wurden bin bist passt hilft \
    kommt bekommt bekomme zählt verfällt haftet trägt verstößt ist's \
    est-ce est-il est-elle existe-t-il existe-t-elle peut-on faut-il doit-on devrait-on peut-il sont-ils sont-elles a-t-il a-t-elle a-t-on as-tu avez-vous \
    devons-nous est-on ai-je suis-je dois-je puis-je devrais-je vaut-il y-a-t-il peux-tu dois-tu faudrait-il serait-il sommes-nous avons-nous pouvons-nous \
    es está están son fue fueron puede pueden puedo podemos debe deben debería deberíamos debo debemos hay existe tiene tienen vale conviene era será sirve \
    funciona ha han tengo hace merece necesito necesitamos";
/// Words that look like a verb at the beginning but are not.
pub(super) const PRONOUNS: &str = "i we you he she it they one this that these those there ich wir du ihr sie man es das dies je nous tu vous il elle ils elles \
    ce cela ça yo nosotros él ella ellos usted se the a an der die das ein eine mein unser le la les l' un une mon notre el los las una mi nuestro my our your";

/// Verbs of calculation.
pub(super) const COMPUTE: &str = "calculate compute convert solve estimate multiply add subtract divide round simplify evaluate determine count \
    berechne berechnen rechne rechnen addiere multipliziere dividiere löse lösen schätze schätzen ermittle bestimme runde wandle \
    calcule calculez calculer convertis convertissez résous résolvez estime estimez détermine déterminez additionne additionnez arrondis trouve trouvez \
    calcula calcule calcular convierte convertir resuelve estima suma multiplica divide redondea determina halla";
/// Verbs that ask for something to be written.
pub(super) const WRITE: &str = "write create implement code generate give show provide build make need want refactor fix rewrite complete define \
    schreibe schreib schreiben erstelle erstell implementiere gib zeig zeige programmiere baue brauche suche formuliere \
    écris écrivez écrire crée créez implémente implémentez donne donnez montre génère programme \
    escribe escriba escribir crea cree implementa genera dame muestra muéstrame haz programa necesito";
/// Verbs that ask for a list.
pub(super) const NAME: &str = "name list enumerate give state tell mention cite identify nenne nennen nenn liste zähle zähl gib sag sage sagt sagen \
    cite citez énumère énumérez nomme nommez liste listez donne donnez indique indiquez mentionne dis-moi dites-moi donne-moi donnez-moi \
    nombra enumera menciona lista cita di dime dame indica nómbrame";
/// Verbs that ask for an order.
pub(super) const RANK: &str = "rank order sort arrange prioritize prioritise sequence ordne sortiere sortieren priorisiere ordnen reihe classe classez ordonne ordonnez range \
    rangez trie triez priorise ordena ordene clasifica prioriza ordenar";
/// Phrases that ask for an order of given things.
pub(super) const IN_ORDER: &str = "in what order|in which order|correct order|right order|order of priority|in order of|in order,|, in order|in the order|chronological order|\
    welcher reihenfolge|richtige reihenfolge|richtigen reihenfolge|reihenfolge|rangfolge|der reihe nach|quel ordre|dans l'ordre|ordre chronologique|bon ordre|ordre de|ordre correct|\
    du meilleur au|du plus |du moins |vom besten|nach dringlichkeit|nach priorität|de mejor a|del mejor al|de peor a|del más|qué orden|orden correcto|en orden|orden cronológico|orden de|de mayor a menor|de menor a mayor|from best to worst|from highest|from lowest|from oldest|from cheapest|from smallest|from largest";
/// Verbs that ask for open text.
pub(super) const EXPLAIN: &str = "explain describe summarize summarise discuss compare analyze analyse translate suggest draft review argue help think outline tell \
    recommend advise propose interpret comment critique brainstorm paraphrase \
    erkläre erklär erklären beschreibe beschreib fasse diskutiere vergleiche übersetze analysiere bewerte begründe entwirf skizziere erzähl erzähle \
    explique expliquez décris décrivez résume résumez compare comparez traduis traduisez analyse analysez raconte racontez propose proposez rédige rédigez \
    explica explique describe resume compara traduce analiza cuéntame propón redacta sugiere";
/// Verbs that ask for one of several.
pub(super) const CHOOSE: &str = "pick choose select decide vote wähle wählt entscheide such choisis choisissez tranche votez elige escoge decide elegid";
/// Verbs of cost and measure after a question word.
pub(super) const COSTS: &str = "cost costs weigh weighs kostet kosten wiegt wiegen ergibt ergeben macht verdient zahlt coûte coûtent pèse pèsent vaut valent font fait mesure cuesta cuestan pesa pesan \
    vale valen mide suma";

/// Nouns for a number.
pub(super) const NUMBER_NOUNS: &str = "number count amount total sum product percentage percent ratio price cost costs fee fine year age height length weight mass depth width \
    distance area boiling melting freezing volume density altitude radius diameter perimeter circumference angle frequency voltage century decade duration population probability chance odds remainder average mean median \
    speed velocity temperature capacity budget salary wage rent port quotient factorial gcd lcm root digit exponent interest discount tax vat rate latency throughput bandwidth \
    halflife ph half double triple third value result magnitude \
    nombre montant total somme produit pourcentage prix coût coûts année âge hauteur longueur poids profondeur largeur distance surface volume densité aire moitié double tiers quart rayon diamètre \
    périmètre fréquence tension durée probabilité reste moyenne médiane vitesse température capacité budget salaire loyer racine quotient pgcd ppcm taux chiffre quantité population \
    valeur résultat superficie port \
    numéro siècle siglo mitad doble tercio número cantidad suma total producto porcentaje precio costo coste año edad altura longitud peso masa profundidad anchura distancia área volumen densidad radio diámetro \
    perímetro ángulo frecuencia duración probabilidad resto promedio media mediana velocidad temperatura capacidad presupuesto salario sueldo alquiler raíz cociente mcd mcm tasa cifra \
    importe población valor resultado superficie puerto iva";
/// German nouns for a number.
pub(super) const GERMAN_NUMBERS: &str = "zahl anzahl menge summe produkt prozent prozentsatz anteil verhältnis preis kosten gebühr jahr jahreszahl alter höhe länge gewicht masse tiefe breite entfernung fläche \
    volumen dichte radius durchmesser umfang winkel frequenz spannung dauer wahrscheinlichkeit rest durchschnitt mittelwert median geschwindigkeit temperatur kapazität \
    jahrhundert hälfte doppelte drittel viertel gehalt lohn miete port quersumme quotient fakultät ggt kgv wurzel ziffer zins zinsen rabatt steuer betrag wert ergebnis einwohnerzahl postleitzahl stückzahl flächeninhalt siedepunkt \
    schmelzpunkt gesamtpreis endpreis";
/// Nouns for a number only with a complement: `What is the value of …`, but not `What is value?`.
pub(super) const VAGUE: &str = "value result port rate budget total media valor resultado wert ergebnis résultat valeur produkt product produit producto reste resto rest mean \
    chance share rent mass masse masa root age speed time";
/// Nouns for a date.
pub(super) const DATE_NOUNS: &str = "date day weekday deadline birthday due expiry datum tag wochentag stichtag geburtstag enddatum ablaufdatum fälligkeit fristende fristablauf liefertermin abgabetermin \
    date jour échéance fecha día plazo vencimiento month monat mois mes";
/// Nouns for a list of things.
pub(super) const LIST_NOUNS: &str = "ingredients ingrédients ingredientes zutaten";
/// Nouns for something to type.
pub(super) const CODE_NOUNS: &str = "command query regex regexp lambda comprehension one-liner oneliner script snippet function method program subroutine macro alias cronjob crontab selector expression formula statement code \
    sql dockerfile makefile bash shell \
    befehl kommando abfrage regex einzeiler skript funktion methode programm makro ausdruck formel anweisung code selektor query \
    commande requête regex fonction script méthode programme macro formule instruction expression code sélecteur \
    comando consulta regex función script método programa macro fórmula instrucción sentencia expresión código selector";
/// Nouns for something to type only together with a tool: `Excel formula`, `Python expression`.
pub(super) const CODE_VAGUE: &str = "expression formula statement method program code function macro selector alias ausdruck formel anweisung methode programm funktion makro selektor formule \
    instruction méthode programme fonction sélecteur fórmula instrucción expresión método programa función sentencia código shell bash sql";
/// Languages and programs that take typed input.
pub(super) const TOOLS: &str = "git bash shell zsh powershell cmd sql mysql postgres postgresql sqlite psql python python3 java javascript js typescript ts rust c c++ c# go golang ruby php perl kotlin swift scala \
    haskell r julia lua excel sheets calc numpy pandas regex awk sed grep jq curl docker kubectl kubernetes pip vim nano tmux linux unix ubuntu macos terminal css html npm yarn pip cargo \
    make cmake latex matlab ffmpeg ssh rsync systemctl systemd crontab cron terraform ansible node react django mongodb redis kommandozeile konsole ligne console consola línea libreoffice";
/// Things that only a command or a program handles.
pub(super) const COMPUTING: &str = "process pid commit commits branch stash repo repository container pod array dict dictionary stdout stdin symlink localhost \
    prozess array repo commits rama ramas proceso processus branche conteneur";
/// Verbs and nouns for tasks that no line of code can do.
pub(super) const ABSTRACT: &str = "learn start begin improve structure organize organise design choose decide teach handle scale review test debug maintain document explain become avoid prevent \
    work works think feel compare migrate convince lernen anfangen verbessern strukturieren organisieren entwerfen wählen entscheiden vermeiden funktioniert funktionieren umgehen arbeiten arbeitet \
    apprendre commencer améliorer structurer organiser choisir éviter fonctionne fonctionnent aprender empezar mejorar estructurar organizar elegir evitar funciona funcionan should soll sollte sollten \
    devrait devrions debería deberíamos best beste besten meilleur mejor erkläre expliquer explicar";

/// Phrases that ask for a list, in a sentence of their own.
pub(super) const LIST_FORMS: &str = "list them|name them|short list|as a list|give all|give a list|give me a list|name all|list all|all of them|alle nennen|nenne alle|nenne sie|nenn sie|als liste|zähle sie auf|\
    cite-les|citez-les|donne-les|donnez-les|nomme-les|sous forme de liste|en liste|dilos|dilas|nómbralos|nómbralas|enuméralos|enuméralas|en una lista|todos ellos|全部列出|请列出|列出来";

/// Numbers above one.
pub(super) const SEVERAL: &str = "two three four five six seven eight nine ten twelve both several some all few zwei drei vier fünf sechs sieben acht neun zehn zwölf alle alles sämtliche beide beiden einige \
    deux trois quatre cinq six sept huit neuf dix douze tous toutes plusieurs quelques dos tres cuatro cinco seis siete ocho nueve diez doce todos todas varios varias algunos algunas ambos";
/// Open-ended or subjective things: a list of them is a proposal.
pub(super) const ENDLESS: &str = "reason reasons way ways advantage advantages disadvantage disadvantages benefit benefits drawback drawbacks difference differences cause causes risk risks pros cons \
    tip tips idea ideas example examples effect effects consequence consequences best main most biggest implication implications trade-off trade-offs tradeoff tradeoffs option options alternative alternatives \
    challenge challenges thought thoughts suggestion suggestions argument arguments factor factors good \
    gründe vorteile nachteile unterschiede ursachen risiken tipps ideen beispiele beste besten wichtigste wichtigsten folgen möglichkeiten argumente vorschläge maßnahmen faktoren \
    raison raisons avantage avantages inconvénient inconvénients différence différences risque risques conseil conseils idée idées exemple exemples meilleur meilleure meilleurs meilleures \
    conséquence conséquences principale principales principaux causes arguments propositions \
    razón razones ventaja ventajas desventaja desventajas diferencia diferencias causa causas riesgo riesgos consejo consejos idea ideas ejemplo ejemplos mejor mejores principal principales \
    consecuencia consecuencias motivos argumentos";
/// Adjectives that limit them together with a number: `the three main meals`.
pub(super) const MAIN: &str = "best main most biggest good beste besten wichtigste wichtigsten meilleur meilleure meilleurs meilleures principale principales principaux mejor mejores principal principales";
/// The Chinese equivalent of `ENDLESS`.
pub(super) const ENDLESS_HAN: &str = "原因|理由|优点|缺点|区别|方法|建议|例子|影响|风险|好处|坏处|办法|想法|差别|利弊|优势|劣势|注意";

/// Words that end a noun phrase.
pub(super) const STOPS: &str = "of for to that which who in on at from with by when if is are was were does do did can has have should will would must und oder von für der des die das zu mit bei auf aus wenn \
    ist sind hat haben wird soll muss kann liegt gibt de du des d' que qui pour dans en sur avec à au aux est sont a ont faut doit peut del para con por es son tiene hay está fue \
    between zwischen entre as per beim im am pro";
/// Words before a noun that are not part of the phrase.
pub(super) const DETERMINERS: &str = "the a an its our my your their his her der die das dem den ein eine einen einem einer unser unsere mein meine le la les l' un une mon ma mes notre nos son sa ses \
    el los las una unos unas mi mis su sus nuestro nuestra me us mir uns moi nous nos";
/// Forms of "be" after a question word.
pub(super) const COPULAS: &str = "is are was were 's be ist sind war waren lautet lauten heißt heißen beträgt est sont était fut es son era fue eran serait will would wird wäre será";

/// Superlatives and other marks of a question without a verb.
pub(super) const PHRASE_MARKS: &str = "best beste bester bestes meilleur meilleure meilleurs mejor mejores ideal optimal thoughts opinions ideas tips advice meinung meinungen tipps avis conseils consejos opiniones \
    capital capitale author auteur autor hauptstadt definition meaning synonym recommendation recommendations";

/// Words of a general question about a moment, which no date answers.
pub(super) const WHEN_OPEN: &str = "should would to use sollte sollten soll sollen verwende verwendet benutzt benutze nutzt devrais devrait devons faut-il conviene debería deberíamos debo usar utilise utiliser";
/// Calendar words.
pub(super) const CALENDAR: &str = "january february march april june july august september october november december januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet \
    août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre today heute aujourd'hui hoy latest spätestens deadline frist";
