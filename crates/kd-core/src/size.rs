//! Sizes in bytes, for people.

/// Formats a size: `812 bytes`, `1.2 KiB`, `3.4 MiB`.
pub fn size(bytes: u64) -> String {
    let of = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{:.1} KiB", of(1 << 10)),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", of(1 << 20)),
        _ => format!("{:.1} GiB", of(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1229, "1.2 KiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }
}
