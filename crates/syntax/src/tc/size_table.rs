//! `stab`: the table of sizes that tc computes for the kernel.

use super::options::link_layer;
use super::words::Words;
use crate::Refusal;
use crate::number::{i32_in, u32_in};
use tidegate_policy::spec::{STAB, help_options};
use tidegate_policy::{LinkLayer, SizeTable};

/// A netlink message of tc holds 64 KiB: a longer table cannot be sent.
const MOST_ENTRIES: u32 = 32_700;

/// Reads the options after `stab`, up to the first word that is none of them.
pub(super) fn parse(words: &mut Words<'_>) -> Result<SizeTable, Refusal> {
    let mut table = SizeTable::default();
    let mut seen: Vec<&str> = Vec::new();
    while let Some(option) = words.peek().and_then(|word| STAB.iter().find(|option| option.is(word))) {
        words.skip();
        let text = words.need()?;
        if seen.contains(&option.key) {
            return Err(Refusal::duplicate(option.key, text).at(words.last()));
        }
        let wrong = || {
            Refusal::wrong(option.blame, option.key).at(words.last()).remedy(format!(
                "stab {} takes {}; \"{text}\" is not one.",
                option.key,
                option.value.example()
            ))
        };
        match option.key {
            "mtu" => table.mtu = u32_in(text, 10).ok_or_else(wrong)?,
            "mpu" => table.mpu = u32_in(text, 10).ok_or_else(wrong)?,
            "tsize" => table.tsize = u32_in(text, 10).ok_or_else(wrong)?,
            "overhead" => table.overhead = i32_in(text, 10).ok_or_else(wrong)?,
            _ => {
                table.linklayer = link_layer(text).ok_or_else(wrong)?;
                table.linklayer_stated = true;
            }
        }
        // tc takes a zero for not given.
        if text != "0" {
            seen.push(option.key);
        }
    }
    if words.peek() == Some("help") {
        return Err(Refusal { stderr: help(), code: 255, ..Refusal::default() });
    }
    if seen.is_empty() || (table.overhead == 0 && table.mpu == 0 && !table.linklayer_stated) {
        return Err(Refusal { code: 255, ..Refusal::default() }.at(words.last()).remedy(
            "stab without overhead, mpu or linklayer changes nothing, and tc refuses it without a word.",
        ));
    }
    if table.linklayer == LinkLayer::Atm || table.mpu > 0 {
        fill(&mut table).map_err(|refusal| refusal.at(words.last()))?;
    } else {
        (table.mtu, table.tsize) = (0, 0);
    }
    Ok(table)
}

/// The options of `stab`.
pub(super) fn help() -> String {
    let mut out =
        String::from("stab: sizes as the link below sees them; on a root qdisc, before the kind\noptions:\n");
    help_options(STAB, &mut out);
    out
}

/// Computes the entries.
fn fill(table: &mut SizeTable) -> Result<(), Refusal> {
    if table.mtu == 0 {
        table.mtu = 2047;
    }
    if table.tsize == 0 {
        table.tsize = 512;
    }
    if table.tsize > MOST_ENTRIES {
        return Err(Refusal::new(2, "addattr_l ERROR: message exceeded bound of 65572")
            .then("Error: Size table data attribute is missing.")
            .remedy(format!("A size table has at most {MOST_ENTRIES} entries; 512 are the custom.")));
    }
    table.cell_align = -1;
    table.cell_log = (0..31).find(|log| table.mtu >> log < table.tsize).unwrap_or(31);
    // An entry has 16 bits: halve all until the largest fits.
    for size_log in 0..32 {
        table.size_log = size_log;
        if let Some(entries) = table.entries() {
            table.data = entries;
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stab(text: &str) -> Result<SizeTable, Refusal> {
        let args: Vec<String> = text.split_whitespace().map(String::from).collect();
        parse(&mut Words::new(&args))
    }

    /// The kernel's lookup.
    fn looked_up(table: &SizeTable, length: u32) -> u64 {
        let slot = (i64::from(length) + i64::from(table.overhead) + i64::from(table.cell_align)).max(0)
            >> table.cell_log;
        u64::from(table.data[slot as usize]) << table.size_log
    }

    /// V-L3: every length up to 2047 - 40 with overhead 40, mpu 64, ATM.
    #[test]
    fn v_l3_sizes_are_cells_of_lengths_rounded_up_to_four() {
        let table = stab("overhead 40 mpu 64 linklayer atm").expect("a table");
        assert_eq!(
            (table.cell_log, table.size_log, table.data.len(), table.mtu, table.tsize),
            (2, 0, 512, 2047, 512)
        );
        for length in 1..=2007 {
            let wire = (u64::from(length) + 40).div_ceil(4) * 4;
            assert_eq!(looked_up(&table, length), wire.max(64).div_ceil(48) * 53, "length {length}");
        }
        assert_eq!([looked_up(&table, 1500), looked_up(&table, 28)], [1749, 106]);
    }

    #[test]
    fn shapes_of_tables() {
        let shape = |text: &str| stab(text).map(|t| (t.mtu, t.tsize, t.cell_log, t.size_log, t.data.len()));
        let table = [
            shape("linklayer atm tsize 100"),
            shape("linklayer atm mtu 1 tsize 1"),
            shape("linklayer ethernet tsize 2 mtu 200000 mpu 10"),
            shape("linklayer ethernet mtu 3000"),
            shape("overhead 4 tsize 64"),
        ];
        let wanted = [
            Ok((2047, 100, 5, 0, 100)),
            Ok((1, 1, 1, 0, 1)),
            Ok((200000, 2, 17, 3, 2)),
            Ok((0, 0, 0, 0, 0)),
            Ok((0, 0, 0, 0, 0)),
        ];
        assert_eq!(table, wanted);
    }

    #[test]
    fn refusals() {
        let words = |text: &str| stab(text).map_err(|refusal| (refusal.stderr, refusal.code)).err();
        let table = [
            words("overhead x"),
            words("overhead 10 overhead 20"),
            words("mpu -1"),
            words("tsize x"),
            words("overhead"),
            words("mtu 3000 pfifo"),
            words("linklayer atm tsize 100000"),
        ];
        let wanted = [
            ("Error: argument \"invalid overhead\" is wrong: overhead\n", 255),
            ("Error: duplicate \"overhead\": \"20\" is the second value.\n", 255),
            ("Error: argument \"invalid mpu\" is wrong: mpu\n", 255),
            ("Error: argument \"invalid table size\" is wrong: tsize\n", 255),
            ("Command line is not complete. Try option \"help\"\n", 255),
            ("", 255),
            (
                "addattr_l ERROR: message exceeded bound of 65572\nError: Size table data attribute is \
                missing.\n",
                2,
            ),
        ];
        assert_eq!(table, wanted.map(|(text, code)| Some((text.to_string(), code))));
    }
}
