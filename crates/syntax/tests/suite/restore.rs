//! What iptables-restore reads: tables, counters, quotes, and what it refuses with its line (recorded from
//! version 1.8.9).

use tidegate_syntax::iptables::{RestoreLine, print_rule, restore};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

#[test]
fn tables_are_read() {
    let text = "# a comment\n*mangle\n:FORWARD DROP [3:4]\n:mine - [0:0]\n[5:6] -A FORWARD -p tcp --dport \
    80 -m comment --comment \"a b\" -j mine\n\
                -I mine 1 -j MARK --set-mark 1\nCOMMIT\n\n*filter\n-A INPUT -j DROP\nCOMMIT\n";
    let read = restore("iptables-restore", &words("-n -c"), text).expect("the call is right");
    assert_eq!((read.flush, read.counters, read.test, read.refusal), (false, true, false, None));
    let lines: Vec<String> = read
        .tables
        .iter()
        .flat_map(|table| {
            table.lines.iter().map(|(line, what)| match what {
                RestoreLine::Chain(chain, policy, counters) => {
                    format!("{} {line}: {chain} {policy:?} {counters:?}", table.name)
                }
                RestoreLine::Rule(op, counters) => {
                    let rule = op.command.rule().map(|rule| print_rule(rule, false)).unwrap_or_default();
                    format!("{} {line}: {}{rule} {counters:?}", table.name, op.table)
                }
            })
        })
        .collect();
    let wanted = [
        "mangle 3: FORWARD Some(true) (3, 4)".replace("true", "false"),
        "mangle 4: mine None (0, 0)".into(),
        "mangle 5: mangle -p tcp -m tcp --dport 80 -m comment --comment \"a b\" -j mine (5, 6)".into(),
        "mangle 6: mangle -j MARK --set-xmark 0x1/0xffffffff (0, 0)".into(),
        "filter 10: filter -j DROP (0, 0)".into(),
    ];
    assert_eq!(lines, wanted);
    assert_eq!(read.tables.iter().map(|table| table.commit).collect::<Vec<_>>(), [7, 11]);
    let one = restore("iptables-restore", &words("-T filter --test"), text).expect("the call is right");
    assert_eq!((one.tables.len(), one.test), (1, true));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let v = "iptables-restore v1.8.9 (nf_tables):";
    let try_help = "Try `iptables-restore -h' or 'iptables-restore --help' for more information.\n";
    let table = [
        ("*mangle\n-A FORWARD -j ACCEPT\n", 0, 1, "iptables-restore: COMMIT expected at line 3\n".to_owned()),
        (
            "*mangle\n-A FORWARD -j MARK --set-mrk 2\nCOMMIT\n",
            0,
            2,
            format!("{v} unknown option \"--set-mrk\"\nError occurred at line: 2\n{try_help}"),
        ),
        (
            "*mangle\n:FORWARD FOO [0:0]\nCOMMIT\n",
            0,
            1,
            "iptables-restore: line 2 failed: Bad policy name.\n".into(),
        ),
        (
            "*mangle\n:FORWARD\nCOMMIT\n",
            0,
            2,
            format!("{v} iptables-restore: line 2 policy invalid\nError occurred at line: 2\n{try_help}"),
        ),
        (
            "*raw\nCOMMIT\n*nope\nCOMMIT\n",
            1,
            2,
            format!(
                "{v} iptables-restore: line 3 table name 'nope' invalid\nError occurred at line: \
                3\n{try_help}"
            ),
        ),
        ("COMMIT\n", 0, 1, "iptables-restore: line 1 failed\n".into()),
        (
            "*mangle\n-A FORWARD -t filter\nCOMMIT\n",
            0,
            2,
            format!(
                "{v} The -t option cannot be used in iptables-restore.\n\nError occurred at line: \
                2\n{try_help}"
            ),
        ),
    ];
    for (text, tables, code, output) in table {
        let read = restore("iptables-restore", &[], text).expect("the call is right");
        let refusal = read.refusal.expect(text);
        assert_eq!((read.tables.len(), refusal.code, refusal.stderr), (tables, code, output), "{text}");
    }
}

#[test]
fn a_line_that_begins_with_a_letter_of_several_bytes_is_refused() {
    let outside =
        restore("iptables-restore", &[], "é\n").expect("the call is right").refusal.expect("no such line");
    assert!(outside.stderr.contains("line 1 failed"), "{}", outside.stderr);
    for line in ["é", "→ -j ACCEPT", "-é", "*é"] {
        let text = format!("*mangle\n{line}\nCOMMIT\n");
        let read = restore("ip6tables-restore", &[], &text).expect("the call is right");
        assert!(read.refusal.is_some(), "{line} was taken");
    }
}
