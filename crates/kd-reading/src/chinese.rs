//! Finds the kind of answer that a Chinese sentence asks for. Chinese question words take the place of the answer,
//! so they are searched in the whole sentence.

use super::arithmetic::is_arithmetic;
use super::kind::Kind;
use super::kind_words::{ENDLESS_HAN, TOOLS, any_in, has};

/// Returns the kind of a lowercase sentence without asides.
pub(super) fn kind(sentence: &str, asks: bool, alone: bool) -> Option<Kind> {
    let text = sentence
        .trim()
        .trim_end_matches(['。', '！', '!', '.', ' ', '呀', '啊', '呢']);
    let starts = |table: &str| {
        let bare = [
            "请问",
            "请你",
            "请",
            "麻烦",
            "帮我",
            "帮忙",
            "你好",
            "，",
            "大家",
            "想问一下",
            "问一下",
            "我想知道",
            "能否",
            "可以帮我",
            "给我",
        ]
        .iter()
        .fold(text, |t, lead| t.strip_prefix(lead).unwrap_or(t));
        table.split('|').any(|word| bare.starts_with(word))
    };
    let holds = |table: &str| any_in(table, text);
    if starts(
        "为什么|解释|说明|谈谈|介绍|分析|描述|翻译|总结|比较|讲讲|评价|怎么看|如何看待|用一句话",
    ) {
        return Some(Kind::Open);
    }
    let tool = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '+' && c != '#')
        .any(|word| has(TOOLS, word));
    let code = "sql|命令|语句|正则|表达式|函数|脚本|代码|查询|公式|程序|一行";
    if starts("写|编写|用|实现|给出|生成|写出") && holds(code) && !holds("多少|等于几")
    {
        return Some(Kind::Code);
    }
    if holds("排序|排列|排个序|排一下|顺序|次序|先后") && !tool {
        return Some(Kind::Ranking);
    }
    if holds("命令|正则表达式|sql语句|sql 语句|语句|公式")
        && (holds("什么|哪个|哪条|怎么|如何|的命令|是|怎样") || alone)
        && (tool || holds("命令|正则|语句"))
        && !holds("命令行工具")
    {
        return Some(Kind::Code);
    }
    if tool
        && holds("怎么|如何|怎样|怎麼")
        && !holds("学习|学好|提高|理解|选择|设计|优化|避免|处理|看待|应该|入门|使用好|管理")
    {
        return Some(Kind::Code);
    }
    let leads = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .is_some_and(|word| has(TOOLS, word));
    if leads && alone && !asks && !holds("什么|吗|谁|哪|多少|还是|多久|好处|区别") {
        return Some(Kind::Code);
    }
    if holds("为什么|怎么办|如何|怎样") && !holds("多少|几") {
        return Some(Kind::Open);
    }
    let endless = any_in(ENDLESS_HAN, text);
    let phrase = alone && !asks && !holds("写|说明|为什么|怎么|如何") || starts("说");
    if !endless
        && (phrase && has_count(text)
            || holds("哪些|哪几|分别是|有哪|全部列出|哪两|哪三|哪四")
            || starts("列出|列举|说出|举出|写出|给出|罗列|列一下")
            || is_counted(text))
    {
        return Some(Kind::List);
    }
    if holds("哪天|哪一天|几月几|几号|什么日期|什么日子|日期|星期几|周几|礼拜几|几月份|截止到什么")
    {
        return Some(Kind::Date);
    }
    if holds("什么时候|何时|啥时候") {
        let advice = holds("应该|适合|最好|才能|可以|需要|合适");
        return Some(if advice { Kind::Open } else { Kind::Date });
    }
    let how_many = holds(
        "多少|多大|多高|多长|多远|多重|多久|多宽|多深|多快|等于|计算|算一下|算算|换算|哪一年|哪年|几分之|百分之几|几岁|求|估计|估算|概率是|面积是|总和",
    ) || text.match_indices('几').any(|(at, _)| {
        let rest = &text[at + '几'.len_utf8()..];
        !rest.starts_with('乎') && !text[..at].ends_with(['这', '那', '好', '有'])
            || text[..at].ends_with('有') && asks
    });
    if is_yes_no(text) {
        return Some(Kind::YesNo);
    }
    let operation =
        holds("乘|除以|减去|加上|的平方|次方") && text.chars().any(|c| c.is_ascii_digit());
    if how_many || operation || is_arithmetic(text) {
        return Some(Kind::Number);
    }
    if endless || holds("什么|谁|哪里|哪儿|怎么|怎样|哪个|哪种|哪位|啥|名字|推荐|建议")
    {
        return Some(Kind::Open);
    }
    None
}

/// Returns whether a text asks for a given number of things: `四个特性是什么`.
fn is_counted(text: &str) -> bool {
    let asked = any_in("是什么|是哪|有什么|叫什么|包括", text);
    has_count(text)
        && (asked || text.ends_with("什么") || text.ends_with('谁') || text.ends_with("哪儿"))
}

/// `三原色`, `七种颜色`
fn has_count(text: &str) -> bool {
    // Numbers in titles do not count.
    let untitled = text.rsplit('》').next().unwrap_or(text);
    let chars: Vec<char> = untitled.chars().collect();
    chars.windows(2).any(|pair| {
        "二两三四五六七八九十".contains(pair[0])
            && "个种项大条位座件部门类层级步原".contains(pair[1])
    })
}

/// `…吗`, `是否`, `能不能`
fn is_yes_no(text: &str) -> bool {
    let end = text.trim_end_matches(['？', '?', ' ']);
    let knows = any_in("你知道|知不知道|能告诉|可以告诉", text);
    if (end.ends_with(['吗', '么', '吧']) && !end.ends_with("什么") && !end.ends_with("怎么")
        || text.contains("吗，")
        || text.contains("吗,"))
        && !knows
    {
        return true;
    }
    if any_in(
        "是否|能否|可否|有没有|有无|应否|行不行|对不对|要不要|好不好|值不值得",
        text,
    ) {
        return true;
    }
    let chars: Vec<char> = text.chars().collect();
    chars
        .windows(3)
        .any(|w| w[0] == w[2] && matches!(w[1], '不' | '没'))
        || end.ends_with('不')
        || end.ends_with("没有") && end.chars().count() < 20
}
