//! Lowercase hexadecimal digits. Input and output: bytes and their digits.

/// Encodes bytes as lowercase hexadecimal digits, two for each byte.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits =
        |byte: &u8| [byte >> 4, byte & 15].map(|half| char::from(DIGITS[usize::from(half)]));
    bytes.iter().flat_map(digits).collect()
}

/// Decodes the lowercase hexadecimal digits of exactly `N` bytes; `None` for any other text.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_with_two_digits_and_read_again() {
        let all: [u8; 256] = std::array::from_fn(|byte| byte as u8);
        let text = hex(&all);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(unhex::<256>(&text), Some(all));
        for wrong in ["", "0", "0g", "0A", "000", "é"] {
            assert_eq!(unhex::<1>(wrong), None, "{wrong}");
        }
    }
}
