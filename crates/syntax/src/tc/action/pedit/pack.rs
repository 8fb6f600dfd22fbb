//! Fields as words of 32 bits.

use super::fields::{Field, FieldBytes, Form, Value};
use tidegate_policy::PeditKey;

/// Adds the keys of a field; the error is tc's message where it cannot.
pub(super) fn pack(field: &Field, value: &Value, keys: &mut Vec<PeditKey>) -> Result<(), String> {
    let mut pack = |offset: i32, form: Form, number: u32, keep: bool, retain: u32| -> Result<(), String> {
        let part = Part { offset, form, number, keep, retain };
        keys.push(PeditKey { header: field.header, add: value.add, ..part.key()? });
        Ok(())
    };
    match &value.bytes {
        FieldBytes::Number(number) => pack(field.offset, field.form, *number, value.keep, value.retain),
        FieldBytes::Address6(raw) => (0..).zip(raw.chunks_exact(4)).try_for_each(|(at, word)| {
            pack(field.offset + 4 * at, Form::Word, number(word), false, u32::MAX)
        }),
        // Six bytes begin with a word, or end with one.
        FieldBytes::Address(raw) => {
            let first = if field.offset % 4 == 0 { 4 } else { 2 };
            let (before, behind) = raw.split_at(first);
            let form = |raw: &[u8]| if raw.len() == 4 { Form::Word } else { Form::Half };
            pack(field.offset, form(before), number(before), false, u32::MAX)?;
            pack(field.offset + first as i32, form(behind), number(behind), false, u32::MAX)
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// A value within one word.
struct Part {
    offset: i32,
    form: Form,
    number: u32,
    /// The bits stay before the value is laid over them.
    keep: bool,
    retain: u32,
}

impl Part {
    fn key(&self) -> Result<PeditKey, String> {
        let all = self.form.all();
        let shift = self.shift()?;
        let kept = if self.keep { all } else { !self.retain & all };
        Ok(PeditKey {
            offset: self.offset & !3,
            value: (self.number & self.retain & all) << shift,
            mask: !(all << shift) | kept << shift,
            ..PeditKey::default()
        })
    }

    /// The position of the value's last bit in its word.
    fn shift(&self) -> Result<u32, String> {
        let (all, within) = (self.form.all(), (self.offset & 3) as u32);
        match self.form {
            Form::Byte | Form::Class if self.number > all => {
                let mask = if self.keep { all } else { 0 };
                Err(format!("pack_key8 bad value (val {:x} mask {mask:x}", self.number))
            }
            Form::Byte => Ok(8 * (3 - within)),
            // Four bits of version come before it, twenty of flow label behind it.
            Form::Class => Ok(20),
            Form::Half if self.number > all => Err("pack_key16 bad value".into()),
            Form::Half if within == 3 => Err(format!("pack_key16 bad index value {}", self.offset & 3)),
            Form::Half => Ok(8 * (2 - within)),
            _ if within != 0 => Err("pack_key32: 32 bit offsets must begin in 32bit boundaries".into()),
            _ => Ok(0),
        }
    }
}
