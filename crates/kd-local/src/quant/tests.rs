//! Every format against its second description in `tests/tiny/formats.rs`.

use super::*;
use crate::gguf::Gguf;
use crate::tiny::Random;
use crate::tiny::formats::{ALL, Format};
use crate::writer::Writer;

const COLUMNS: usize = 512;
const ROWS: usize = 19;

fn file(format: Format) -> (Gguf, Vec<f64>) {
    let mut random = Random(format.id().into());
    let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let row = format.random_row(COLUMNS, 0.1, &mut random);
        numbers.extend(format.numbers(&row, COLUMNS));
        bytes.extend(row);
    }
    let file = Writer::default()
        .tensor("w", &[COLUMNS as u64, ROWS as u64], format.id(), bytes)
        .finish();
    (Gguf::from_bytes(file).unwrap(), numbers)
}

fn near(got: &[f32], exact: &[f64], tolerance: impl Fn(usize) -> f64) {
    for (i, (got, exact)) in got.iter().zip(exact).enumerate() {
        assert!(
            (f64::from(*got) - exact).abs() <= tolerance(i),
            "{i}: {got} {exact}"
        );
    }
}

#[test]
fn every_format_unpacks_as_the_book_says() {
    for format in ALL {
        let (gguf, numbers) = file(format);
        let tensor = gguf.tensor("w").unwrap();
        let bytes = tensor.kind.row_bytes(COLUMNS).unwrap();
        for r in 0..ROWS {
            let mut out = vec![0.0; COLUMNS];
            dequantise(
                tensor.kind,
                &tensor.bytes[r * bytes..(r + 1) * bytes],
                &mut out,
            )
            .unwrap();
            // Float rounding of one product and one sum of numbers below one.
            near(&out, &numbers[r * COLUMNS..(r + 1) * COLUMNS], |_| 1e-7);
        }
    }
}

#[test]
fn tiles_keep_what_they_can_hold() {
    for format in ALL {
        let (gguf, numbers) = file(format);
        let tensor = gguf.tensor("w").unwrap();
        let tiles = Tiles::pack(&tensor, 8..ROWS).unwrap();
        assert_eq!(
            matches!(tiles, Tiles::Four(_)),
            matches!(format, Format::Q4_0 | Format::Q4_1 | Format::Q4K)
        );
        for r in 8..ROWS {
            let mut out = vec![0.0; COLUMNS];
            tiles.row(r - 8, &mut out);
            let exact = &numbers[r * COLUMNS..(r + 1) * COLUMNS];
            near(&out, exact, |i| match format {
                // One 16-bit scale per block: exact.
                Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0 => 1e-7,
                // Scale and minimum are products: 11 bits of each remain.
                Format::Q4K | Format::Q5K => 0.5 / 2048.0,
                // Rounded to 8 bits: half a step of the block's largest number, plus the scale's rounding.
                _ => {
                    let block = &exact[i / BLOCK * BLOCK..][..BLOCK];
                    block.iter().fold(0f64, |a, v| a.max(v.abs())) / 127.0 * 0.57
                }
            });
        }
        // The incomplete group is padded with rows of zeros.
        let mut out = vec![1.0; COLUMNS];
        tiles.row(ROWS - 8, &mut out);
        assert_eq!(out, vec![0.0; COLUMNS]);
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_name() {
    let file = Writer::default()
        .tensor("w", &[256, 1], 10, vec![0; 84])
        .finish();
    let gguf = Gguf::from_bytes(file).unwrap();
    let error = Tiles::pack(&gguf.tensor("w").unwrap(), 0..1).err().unwrap();
    assert!(error.to_string().contains("Q2_K"), "{error}");
    assert!(error.hint().unwrap().contains("llama-cpp"));
    let file = Writer::default()
        .tensor("w", &[40, 1], 0, vec![0; 160])
        .finish();
    let gguf = Gguf::from_bytes(file).unwrap();
    assert!(matches!(
        Tiles::pack(&gguf.tensor("w").unwrap(), 0..1),
        Err(Error::Unsupported { .. })
    ));
    assert!(dequantise(GgmlType::Q8_0, &[0; 33], &mut [0.0; 32]).is_err());
}
