//! Units of measure: their spellings, and amounts converted to one unit per dimension, so that `90 minutes` equals `1.5
//! h` and `8 Mb` differs from `8 MB`.

/// A unit: its spellings, and its value in the base unit as a fraction.
struct Unit {
    /// The base unit.
    base: &'static str,
    /// The number of base units in one of these units.
    scale: (i128, i128),
    /// Added before scaling.
    offset: (i128, i128),
    /// Spellings, in lower case unless `is_cased`.
    names: &'static str,
    /// Whether case matters: `Mb`, `MB`.
    is_cased: bool,
}

const fn unit(base: &'static str, scale: (i128, i128), names: &'static str) -> Unit {
    Unit {
        base,
        scale,
        offset: (0, 1),
        names,
        is_cased: false,
    }
}

const fn cased(base: &'static str, scale: i128, names: &'static str) -> Unit {
    Unit {
        base,
        scale: (scale, 1),
        offset: (0, 1),
        names,
        is_cased: true,
    }
}

/// The units. If a spelling occurs twice, the first counts.
const UNITS: &[Unit] = &[
    cased("bit", 1, "b bit bits Bit Bits"),
    cased("bit", 8, "B byte bytes Byte Bytes octet octets 字节"),
    cased("bit", 1_000, "kb Kb kbit Kbit"),
    cased("bit", 8_000, "kB KB Kilobyte kilobyte kilobytes ko Ko"),
    cased("bit", 8 << 10, "KiB"),
    cased("bit", 1_000_000, "Mb Mbit megabit megabits Megabit"),
    cased("bit", 8_000_000, "MB megabyte megabytes Megabyte Mo"),
    cased("bit", 8 << 20, "MiB"),
    cased("bit", 1_000_000_000, "Gb Gbit gigabit gigabits Gigabit"),
    cased("bit", 8_000_000_000, "GB gigabyte gigabytes Gigabyte Go"),
    cased("bit", 8 << 30, "GiB"),
    cased("bit", 8_000_000_000_000, "TB terabyte terabytes Terabyte"),
    cased("bit", 8 << 40, "TiB"),
    cased("bit/s", 1_000_000, "Mb/s Mbit/s Mbps"),
    cased("bit/s", 8_000_000, "MB/s MBps"),
    cased("bit/s", 1_000_000_000, "Gb/s Gbit/s Gbps"),
    cased("bit/s", 8_000_000_000, "GB/s GBps"),
    cased("W", 1, "W"),
    cased("W", 1_000, "kW"),
    cased("W", 1_000_000, "MW"),
    cased("Wh", 1, "Wh"),
    cased("Wh", 1_000, "kWh"),
    cased("Wh", 1_000_000, "MWh"),
    cased("N", 1, "N newton newtons Newton"),
    cased("N", 1_000, "kN kilonewton kilonewtons Kilonewton"),
    cased("N", 1_000_000, "MN"),
    cased("J", 1, "J joule joules Joule"),
    cased("J", 1_000, "kJ kilojoule kilojoules Kilojoule"),
    cased("J", 1_000_000, "MJ"),
    cased("Pa", 1, "Pa pascal pascals Pascal"),
    cased("Pa", 100, "hPa mbar"),
    cased("Pa", 1_000, "kPa"),
    cased("Pa", 1_000_000, "MPa"),
    cased("Pa", 100_000, "bar"),
    cased("V", 1, "V volt volts Volt"),
    cased("V", 1_000, "kV"),
    cased(
        "A",
        1,
        "ampere amperes Ampere ampère ampères amperio amperios",
    ),
    cased("Ω", 1, "Ω ohm ohms Ohm"),
    cased("Ω", 1_000, "kΩ"),
    cased("N·m", 1, "N·m Nm N⋅m"),
    cased("m²", 1, "m² m2 qm"),
    cased(
        "m²",
        10_000,
        "ha Hektar hectare hectares hectárea hectáreas",
    ),
    cased("m²", 1_000_000, "km² km2"),
    cased("l", 1_000, "m³ m3"),
    cased("cal", 1, "cal"),
    cased("cal", 1_000, "kcal Cal"),
    cased("K", 1, "K"),
    unit("K", (1, 1), "kelvin"),
    Unit {
        base: "K",
        scale: (1, 1),
        offset: (27_315, 100),
        names: "°c ℃ ºc celsius 摄氏度 °celsius",
        is_cased: false,
    },
    Unit {
        base: "K",
        scale: (5, 9),
        offset: (45_967, 100),
        names: "°f ℉ ºf fahrenheit 华氏度 °fahrenheit",
        is_cased: false,
    },
    unit(
        "m",
        (1_000, 1),
        "km kilometer kilometers kilometre kilometres kilometern kilomètre kilomètres kilómetro kilómetros 公里 千米",
    ),
    unit(
        "m",
        (1, 1),
        "m meter meters metre metres metern mètre mètres metro metros 米",
    ),
    unit(
        "m",
        (1, 100),
        "cm centimeter centimeters centimetre centimetres zentimeter centimètre centimètres centímetro centímetros 厘米",
    ),
    unit(
        "m",
        (1, 1_000),
        "mm millimeter millimeters millimetre millimetres millimètres milímetros 毫米",
    ),
    unit(
        "m",
        (1_609_344, 1_000),
        "mi mile miles meile meilen milla millas 英里",
    ),
    unit(
        "m",
        (3_048, 10_000),
        "ft foot feet fuß pied pieds pie pies 英尺",
    ),
    unit(
        "m",
        (254, 10_000),
        "inch inches zoll pouce pouces pulgada pulgadas 英寸",
    ),
    unit("m", (9_144, 10_000), "yd yard yards"),
    unit("m/s", (1, 1), "m/s"),
    unit("m/s", (1_000, 3_600), "km/h kmh kph"),
    unit("m/s", (1_609_344, 3_600_000), "mph"),
    unit(
        "g",
        (1_000_000, 1),
        "t tonne tonnes tonnen tonelada toneladas 吨",
    ),
    unit(
        "g",
        (1_000, 1),
        "kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramo kilogramos 公斤 千克",
    ),
    unit(
        "g",
        (1, 1),
        "g gram grams gramm gramme grammes gramo gramos 克",
    ),
    unit(
        "g",
        (1, 1_000),
        "mg milligram milligrams milligramm milligrammes miligramos 毫克",
    ),
    unit(
        "g",
        (45_359_237, 100_000),
        "lb lbs pound pounds pfund livre livres libra libras 磅",
    ),
    unit(
        "g",
        (28_349_523_125, 1_000_000_000),
        "oz ounce ounces unze unzen once onces onza onzas 盎司",
    ),
    unit(
        "l",
        (1, 1),
        "l liter liters litre litres litern litro litros 升",
    ),
    unit(
        "l",
        (1, 1_000),
        "ml milliliter milliliters millilitre millilitres mililitros 毫升",
    ),
    unit(
        "l",
        (3_785_411_784, 1_000_000_000),
        "gal gallon gallons gallonen galones 加仑",
    ),
    unit(
        "s",
        (1, 1_000),
        "ms millisecond milliseconds millisekunden millisecondes milisegundos 毫秒",
    ),
    unit(
        "s",
        (60, 1),
        "min mins minute minutes minuten minuto minutos 分钟",
    ),
    unit(
        "s",
        (3_600, 1),
        "h hr hrs hour hours stunde stunden heure heures hora horas 小时",
    ),
    unit(
        "s",
        (86_400, 1),
        "day days tag tage tagen jour jours día días 天",
    ),
    unit(
        "s",
        (604_800, 1),
        "week weeks woche wochen semaine semaines semana semanas 周",
    ),
    unit(
        "s",
        (1, 1),
        "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos 秒",
    ),
    unit(
        "month",
        (1, 1),
        "month months monat monate monaten mois mes meses 个月",
    ),
    unit(
        "month",
        (12, 1),
        "year years yr yrs jahr jahre jahren an ans année années año años 年",
    ),
    unit("%", (1, 1), "% percent prozent"),
    unit("‰", (1, 1), "‰"),
    unit("€", (1, 1), "€ eur euro euros 欧元"),
    unit("$", (1, 1), "$ usd dollar dollars dólar dólares us$ 美元"),
    unit("£", (1, 1), "£ gbp quid"),
    unit("¥", (1, 1), "¥ jpy yen"),
    unit("cny", (1, 1), "cny rmb yuan 元 人民币"),
    unit("chf", (1, 1), "chf franken"),
    unit("rad", (1, 1), "rad radian radians radiant"),
    unit(
        "deg",
        (1, 1),
        "° deg degree degrees grad degré degrés grado grados 度",
    ),
    unit("Hz", (1, 1), "hz hertz"),
    unit("Hz", (1_000, 1), "khz"),
    unit("Hz", (1_000_000, 1), "mhz"),
    unit("Hz", (1_000_000_000, 1), "ghz"),
];

/// Returns the base unit of a unit.
pub(super) fn base(word: &str) -> Option<&'static str> {
    of(word).map(|unit| unit.base)
}

/// Returns whether two words name the same unit: `m`, `meters`.
pub(super) fn same(one: &str, two: &str) -> bool {
    match (of(one), of(two)) {
        (Some(one), Some(two)) => std::ptr::eq(one, two),
        _ => false,
    }
}

/// Returns the unit spelled by a word.
fn of(word: &str) -> Option<&'static Unit> {
    let word = word.trim_matches(['.', ',', '*', ')', '(', '。', '，', '!', ';', ':', '`']);
    let low = word.to_lowercase();
    UNITS.iter().find(|unit| {
        let written = if unit.is_cased { word } else { &low };
        !written.is_empty() && unit.names.split(' ').any(|name| name == written)
    })
}

/// Returns the first name of the unit that is the first word of a text.
pub(super) fn name(text: &str) -> Option<&'static str> {
    let unit = leading(text)?;
    unit.names.split(' ').next()
}

/// Returns the unit at the beginning of a text: `公斤左右` has no space after it.
fn leading(text: &str) -> Option<&'static Unit> {
    let text = text.trim_start_matches([' ', '\u{a0}', '\u{202f}', '-', '*']);
    let word = text.split([' ', '\u{a0}', '\n']).next()?;
    let mut next = text.split_whitespace().skip(1);
    let degree = matches!(
        word,
        "°" | "degrees" | "degree" | "Grad" | "grados" | "degrés"
    );
    if degree && let Some(scale) = next.next().filter(|w| w.chars().count() > 2 || word == "°") {
        let scale = scale.trim_matches(['.', ',', '*', ')']).to_lowercase();
        let scale = match scale.as_str() {
            "c" => "celsius",
            "f" => "fahrenheit",
            other => other,
        };
        if let Some(unit) = of(scale).filter(|unit| unit.base == "K") {
            return Some(unit);
        }
    }
    of(word).or_else(|| {
        let han = word.chars().take_while(|c| super::language::is_han(*c));
        let han: String = han.collect();
        let mut ends = han.char_indices().map(|(at, c)| at + c.len_utf8());
        ends.by_ref().filter_map(|end| of(&han[..end])).last()
    })
}

/// Returns whether a word is a symbol whose meaning depends on case.
pub(super) fn is_cased(word: &str) -> bool {
    const WORDS: usize = 5;
    let short = word.chars().count() <= WORDS && word.chars().any(char::is_uppercase);
    short && of(word).is_some_and(|unit| unit.is_cased)
}

/// Converts an amount to the base unit: `1.5`, `h` gives `5400 s`. `None` if the word is not a unit.
pub(super) fn amount(number: &str, word: &str) -> Option<String> {
    let unit = of(word)?;
    let (top, bottom) = fraction(number)?;
    let (add, of) = unit.offset;
    let top = top
        .checked_mul(of)?
        .checked_add(add.checked_mul(bottom)?)?
        .checked_mul(unit.scale.0)?;
    let bottom = bottom.checked_mul(of)?.checked_mul(unit.scale.1)?;
    let shared = divisor(top.unsigned_abs(), bottom.unsigned_abs());
    let shared = i128::try_from(shared).ok().filter(|s| *s > 0)?;
    Some(match bottom / shared {
        1 => format!("{} {}", top / shared, unit.base),
        bottom => format!("{}/{bottom} {}", top / shared, unit.base),
    })
}

/// Returns a number in normal form as a fraction.
fn fraction(number: &str) -> Option<(i128, i128)> {
    if let Some((top, bottom)) = number.split_once('/') {
        return Some((top.parse().ok()?, bottom.parse().ok()?));
    }
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let bottom = 10i128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    Some((format!("{whole}{decimals}").parse().ok()?, bottom))
}

fn divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_the_same_in_any_unit_of_a_dimension() {
        for ((a, one), (b, other), same) in [
            (("90", "minutes"), ("1.5", "hours"), true),
            (("90", "Minuten"), ("1.5", "Stunden"), true),
            (("90", "分钟"), ("1.5", "小时"), true),
            (("5000", "g"), ("5", "kg"), true),
            (("1", "GB"), ("8", "Gb"), true),
            (("212", "°F"), ("100", "°C"), true),
            (("373.15", "K"), ("100", "Celsius"), true),
            (("0.5", "m"), ("50", "centimètres"), true),
            (("12", "meses"), ("1", "año"), true),
            (("2450", "N"), ("2.45", "kN"), true),
            (("1.2", "MJ"), ("1200", "kJ"), true),
            (("1013", "hPa"), ("101.3", "kPa"), true),
            (("1", "bar"), ("100", "kPa"), true),
            (("2", "ha"), ("20000", "m²"), true),
            (("1", "m³"), ("1000", "l"), true),
            (("5", "MN"), ("5", "kN"), false),
            (("5", "N"), ("5", "N·m"), false),
            (("100", "°C"), ("100", "°F"), false),
            (("5", "kg"), ("5", "lb"), false),
            (("8", "Mb"), ("8", "MB"), false),
            (("5", "€"), ("5", "$"), false),
            (("3", "days"), ("3", "weeks"), false),
            (("1", "MiB"), ("1", "MB"), false),
        ] {
            let (left, right) = (amount(a, one), amount(b, other));
            assert!(left.is_some() && right.is_some(), "{one} {other}");
            assert_eq!(left == right, same, "{a} {one} and {b} {other}");
        }
    }

    #[test]
    fn every_spelling_is_found() {
        for unit in UNITS {
            for name in unit.names.split(' ') {
                assert_eq!(of(name).map(|u| u.base), Some(unit.base), "{name}");
            }
        }
    }
}
