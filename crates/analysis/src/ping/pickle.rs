//! Python's pickles, as far as they hold plain data: numbers, texts, lists, tuples, dictionaries. Nothing is
//! ever carried out: what would make an object becomes [`Value::Other`].
//!
//! A pickle is a program for a machine with a stack. Values are in one list and refer to each other by index,
//! since a list may be filled after it was put into another.

use std::collections::BTreeMap;

/// Values of one pickle at most.
const MOST_VALUES: usize = 8 << 20;

/// A value; places are those of [`Pickle::values`].
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A number.
    Number(f64),
    /// A text, or bytes that are one.
    Text(String),
    /// A list or tuple.
    List(Vec<usize>),
    /// Keys and values.
    Map(Vec<(usize, usize)>),
    /// Nothing, or what is not read.
    Other,
}

/// What a pickle holds.
#[derive(Debug)]
pub(super) struct Pickle {
    values: Vec<Value>,
    root: usize,
}

impl Pickle {
    /// Reads a pickle of any protocol.
    ///
    /// # Errors
    /// Where and why it is none.
    pub(super) fn read(bytes: &[u8]) -> Result<Pickle, String> {
        let mut machine = Machine {
            bytes,
            at: 0,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: BTreeMap::new(),
        };
        let root = machine.run().map_err(|what| format!("byte {}: {what}", machine.at))?;
        Ok(Pickle { values: machine.values, root })
    }

    /// What it all is.
    pub(super) fn root(&self) -> &Value {
        self.at(self.root)
    }

    /// The value of a place.
    pub(super) fn at(&self, place: usize) -> &Value {
        self.values.get(place).unwrap_or(&Value::Other)
    }

    /// The value of a dictionary under this name.
    pub(super) fn member(&self, map: &Value, name: &str) -> Option<&Value> {
        self.members(map).into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The members of a dictionary whose keys are texts.
    pub(super) fn members<'p>(&'p self, map: &Value) -> Vec<(&'p str, &'p Value)> {
        let Value::Map(pairs) = map else { return Vec::new() };
        let named = |(key, value): &(usize, usize)| match self.at(*key) {
            Value::Text(key) => Some((key.as_str(), self.at(*value))),
            _ => None,
        };
        pairs.iter().filter_map(named).collect()
    }

    /// The values of a list.
    pub(super) fn list(&self, list: &Value) -> Vec<&Value> {
        let Value::List(places) = list else { return Vec::new() };
        places.iter().map(|place| self.at(*place)).collect()
    }

    /// A number, also one that is written as text.
    pub(super) fn number(value: &Value) -> Option<f64> {
        let number = match value {
            Value::Number(number) => *number,
            Value::Text(text) => text.trim().trim_end_matches('%').parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    }
}

struct Machine<'o> {
    bytes: &'o [u8],
    at: usize,
    values: Vec<Value>,
    stack: Vec<usize>,
    /// How high the stack was at each mark.
    marks: Vec<usize>,
    memo: BTreeMap<u64, usize>,
}

impl Machine<'_> {
    /// Carries out opcodes until STOP.
    fn run(&mut self) -> Result<usize, String> {
        loop {
            let command = self.byte()?;
            if command == b'.' {
                return self.pop();
            }
            self.step(command)?;
        }
    }

    fn step(&mut self, command: u8) -> Result<(), String> {
        match command {
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.since_mark()?),
            b'2' => self.stack.push(self.top()?),
            0x80 => drop(self.byte()?),
            0x95 => drop(self.take(8)?),
            b'N' | 0x88 | 0x89 => self.constant(command)?,
            b'I' | b'L' | b'K' | b'M' | b'J' | 0x8a | b'F' | b'G' => self.number(command)?,
            b'S' | b'V' | b'U' | b'T' | b'X' | 0x8c | 0x8d | b'C' | b'B' | 0x8e => self.text(command)?,
            b']' | b'l' | b')' | b't' | 0x85..=0x87 | b'}' | b'd' => self.collection(command)?,
            b'a' | b'e' | b's' | b'u' => self.fill(command)?,
            b'p' | b'q' | b'r' | 0x94 | b'g' | b'h' | b'j' => self.memory(command)?,
            b'c' | 0x93 | b'R' | 0x81 | 0x92 | b'b' | b'i' | b'o' => self.object(command)?,
            other => return Err(format!("the command {other:#04x} is not read")),
        }
        Ok(())
    }

    fn constant(&mut self, command: u8) -> Result<(), String> {
        self.push(match command {
            0x88 => Value::Number(1.0),
            0x89 => Value::Number(0.0),
            _ => Value::Other,
        })
    }

    fn number(&mut self, command: u8) -> Result<(), String> {
        let number = match command {
            b'I' | b'L' | b'F' => {
                let line = self.line()?;
                line.trim_end_matches('L').parse().map_err(|_| format!("`{line}` is not a number"))?
            }
            b'K' => f64::from(self.byte()?),
            b'M' => self.little(2)? as f64,
            b'J' => f64::from(self.little(4)? as u32 as i32),
            b'G' => f64::from_be_bytes(self.take(8)?.try_into().map_err(|_| "it ends early")?),
            _ => self.long()?,
        };
        self.push(Value::Number(number))
    }

    /// A whole number of any length, the least byte first, two's complement.
    fn long(&mut self) -> Result<f64, String> {
        let length = usize::from(self.byte()?);
        let bytes = self.take(length)?;
        if length > 16 {
            return Err("a number of more than 128 bits".to_owned());
        }
        let fill = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
        let mut wide = [fill; 16];
        wide[..length].copy_from_slice(bytes);
        Ok(i128::from_le_bytes(wide) as f64)
    }

    fn text(&mut self, command: u8) -> Result<(), String> {
        let text = match command {
            b'V' => self.line()?.to_owned(),
            // As Python writes texts; what it escapes does not occur in names of hosts.
            b'S' => self.line()?.trim_matches(['\'', '"']).to_owned(),
            _ => {
                let width = match command {
                    b'U' | 0x8c | b'C' => 1,
                    0x8d | 0x8e => 8,
                    _ => 4,
                };
                let length = usize::try_from(self.little(width)?).map_err(|_| "a text too long")?;
                String::from_utf8_lossy(self.take(length)?).into_owned()
            }
        };
        self.push(Value::Text(text))
    }

    fn collection(&mut self, command: u8) -> Result<(), String> {
        let value = match command {
            b']' | b')' => Value::List(Vec::new()),
            b'}' => Value::Map(Vec::new()),
            b'd' => Value::Map(pairs(&self.since_mark()?)),
            b'l' | b't' => Value::List(self.since_mark()?),
            few => {
                let from =
                    self.stack.len().checked_sub(usize::from(few - 0x84)).ok_or("the stack is empty")?;
                Value::List(self.stack.split_off(from))
            }
        };
        self.push(value)
    }

    /// Puts values into the list or dictionary before them.
    fn fill(&mut self, command: u8) -> Result<(), String> {
        let items = match command {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.since_mark()?,
        };
        let into = self.top()?;
        match self.values.get_mut(into) {
            Some(Value::List(list)) if matches!(command, b'a' | b'e') => list.extend(items),
            Some(Value::Map(map)) if matches!(command, b's' | b'u') => map.extend(pairs(&items)),
            // An object of a foreign class may be filled, too.
            Some(Value::Other) => {}
            _ => return Err("this container can hold nothing".to_owned()),
        }
        Ok(())
    }

    /// Remembers what is on top, or brings it back.
    fn memory(&mut self, command: u8) -> Result<(), String> {
        let number = match command {
            b'p' | b'g' => self.line()?.parse().map_err(|_| "no number of what to remember")?,
            b'q' | b'h' => u64::from(self.byte()?),
            0x94 => self.memo.len() as u64,
            _ => self.little(4)?,
        };
        if matches!(command, b'g' | b'h' | b'j') {
            let place = *self.memo.get(&number).ok_or("an item that was never memoized")?;
            self.stack.push(place);
        } else {
            let place = self.top()?;
            self.memo.insert(number, place);
        }
        Ok(())
    }

    /// What would make an object is taken from the stack, and nothing is made.
    fn object(&mut self, command: u8) -> Result<(), String> {
        match command {
            b'c' => drop((self.line()?.len(), self.line()?.len())),
            0x93 | b'R' | 0x81 => drop((self.pop()?, self.pop()?)),
            0x92 => drop((self.pop()?, self.pop()?, self.pop()?)),
            b'o' => drop(self.since_mark()?),
            b'i' => drop((self.line()?.len(), self.line()?.len(), self.since_mark()?)),
            // The object's state; the object stays.
            _ => return self.pop().map(drop),
        }
        self.push(Value::Other)
    }

    fn push(&mut self, value: Value) -> Result<(), String> {
        if self.values.len() >= MOST_VALUES {
            return Err(format!("more than {MOST_VALUES} values"));
        }
        self.stack.push(self.values.len());
        self.values.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<usize, String> {
        let place = self.top()?;
        self.stack.pop();
        Ok(place)
    }

    fn top(&self) -> Result<usize, String> {
        let lowest = self.marks.last().copied().unwrap_or(0);
        self.stack
            .get(lowest..)
            .and_then(<[usize]>::last)
            .copied()
            .ok_or_else(|| "the stack is empty".to_owned())
    }

    fn since_mark(&mut self) -> Result<Vec<usize>, String> {
        let mark = self.marks.pop().ok_or("a mark is missing")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, count: usize) -> Result<&[u8], String> {
        let end = self.at.checked_add(count).ok_or("it ends early")?;
        let taken = self.bytes.get(self.at..end).ok_or("it ends early")?;
        self.at = end;
        Ok(taken)
    }

    /// A number of so many bytes, at most eight, the least first.
    fn little(&mut self, bytes: usize) -> Result<u64, String> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn line(&mut self) -> Result<&str, String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == b'\n').ok_or("a line without an end")?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).map_err(|_| "a line that is not text".to_owned())
    }
}

/// Keys and values, which follow each other.
fn pairs(items: &[usize]) -> Vec<(usize, usize)> {
    items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each opcode as Python's own `pickletools.dis` names it, beside the result of `pickle.loads`.
    #[test]
    fn commands_of_pythons_pickletools() {
        fn shown(pickle: &Pickle, value: &Value) -> String {
            let all = |places: &[usize]| {
                places.iter().map(|place| shown(pickle, pickle.at(*place))).collect::<Vec<_>>()
            };
            match value {
                Value::Number(number) => number.to_string(),
                Value::Text(text) => format!("'{text}'"),
                Value::List(places) => format!("[{}]", all(places).join(", ")),
                Value::Map(pairs) => {
                    let pair = |(key, value): &(usize, usize)| all(&[*key, *value]).join(": ");
                    format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
                }
                Value::Other => "?".to_owned(),
            }
        }
        let cases: [(&str, &[u8], &str); 45] = [
            ("NONE", b"N.", "?"),
            ("NEWTRUE", b"\x80\x02\x88.", "1"),
            ("NEWFALSE", b"\x80\x02\x89.", "0"),
            ("INT", b"I-17\n.", "-17"),
            ("LONG", b"L123456789012L\n.", "123456789012"),
            ("FLOAT", b"F2.5\n.", "2.5"),
            ("BININT", b"J\xff\xff\xff\xff.", "-1"),
            ("BININT", b"J\x04\x03\x02\x01.", "16909060"),
            ("BININT1", b"K\xff.", "255"),
            ("BININT2", b"M\x01\x02.", "513"),
            ("LONG1", b"\x8a\x02\x00\xff.", "-256"),
            ("LONG1", b"\x8a\x02\x01\x7f.", "32513"),
            ("LONG1", b"\x8a\x00.", "0"),
            (
                "LONG1 of 16",
                b"\x8a\x10\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00.",
                "18446744073709552000",
            ),
            (
                "LONG1 of 17",
                b"\x8a\x11\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00.",
                "byte 19: a number of more than 128 bits",
            ),
            ("BINFLOAT", b"G\x40\x04\x00\x00\x00\x00\x00\x00.", "2.5"),
            ("STRING", b"S'ab'\n.", "'ab'"),
            ("UNICODE", b"Vab\n.", "'ab'"),
            ("SHORT_BINSTRING", b"U\x02ab.", "'ab'"),
            ("BINSTRING", b"T\x02\x00\x00\x00ab.", "'ab'"),
            ("BINUNICODE", b"X\x02\x00\x00\x00ab.", "'ab'"),
            ("SHORT_BINUNICODE", b"\x8c\x02ab.", "'ab'"),
            ("BINUNICODE8", b"\x8d\x02\x00\x00\x00\x00\x00\x00\x00ab.", "'ab'"),
            ("SHORT_BINBYTES", b"C\x02ab.", "'ab'"),
            ("BINBYTES", b"B\x02\x00\x00\x00ab.", "'ab'"),
            ("BINBYTES8", b"\x8e\x02\x00\x00\x00\x00\x00\x00\x00ab.", "'ab'"),
            ("EMPTY_LIST, APPEND", b"]K\x01a.", "[1]"),
            ("APPENDS", b"](K\x01K\x02e.", "[1, 2]"),
            ("LIST", b"(K\x01K\x02l.", "[1, 2]"),
            ("EMPTY_TUPLE", b").", "[]"),
            ("TUPLE", b"(K\x01K\x02t.", "[1, 2]"),
            ("TUPLE1, TUPLE2, TUPLE3", b"K\x01\x85K\x02\x86K\x03K\x04\x87.", "[[[1], 2], 3, 4]"),
            ("EMPTY_DICT, SETITEM", b"}K\x01K\x02s.", "{1: 2}"),
            ("SETITEMS", b"}(K\x01K\x02K\x03K\x04u.", "{1: 2, 3: 4}"),
            ("DICT", b"(K\x01K\x02d.", "{1: 2}"),
            ("POP, DUP", b"K\x01K\x02\x302\x86.", "[1, 1]"),
            ("POP_MARK", b"K\x01(K\x02K\x031.", "1"),
            ("BINPUT, BINGET", b"K\x01q\x05K\x02h\x05\x86.", "[2, 1]"),
            ("LONG_BINPUT, LONG_BINGET", b"K\x01r\x00\x01\x00\x00K\x02j\x00\x01\x00\x00\x86.", "[2, 1]"),
            ("PUT, GET", b"K\x01p300\nK\x02g300\n\x86.", "[2, 1]"),
            ("MEMOIZE counts from 0", b"K\x01\x94K\x02\x94h\x00h\x01\x87.", "[2, 1, 2]"),
            ("STACK_GLOBAL, NEWOBJ, BUILD", b"K\x07\x8c\x01a\x8c\x01b\x93)\x81}b\x86.", "[7, ?]"),
            ("GLOBAL, NEWOBJ_EX", b"K\x07ca\nb\n)}\x92\x86.", "[7, ?]"),
            ("INST, OBJ", b"(ia\nb\n(ca\nb\no\x86.", "[?, ?]"),
            ("an object that is a list", b"ca\nb\n)R(K\x01K\x02e.", "?"),
        ];
        for (name, bytes, expected) in cases {
            let read = Pickle::read(bytes).map_or_else(|error| error, |pickle| shown(&pickle, pickle.root()));
            assert_eq!(read, expected, "{name}");
        }
        let refused: [(&[u8], &str); 8] = [
            (b"]K\x01K\x02s.", "byte 6: this container can hold nothing"),
            (b"}K\x01a.", "byte 4: this container can hold nothing"),
            (b"K\x01K\x02a.", "byte 5: this container can hold nothing"),
            (b"h\x01.", "byte 2: an item that was never memoized"),
            (b"K\x01\x86.", "byte 3: the stack is empty"),
            (b"K\x01(0.", "byte 4: the stack is empty"),
            (b"e.", "byte 1: a mark is missing"),
            (b"\xff.", "byte 1: the command 0xff is not read"),
        ];
        for (bytes, expected) in refused {
            assert_eq!(Pickle::read(bytes).expect_err(expected), expected);
        }
    }

    #[test]
    fn numbers_that_are_written_as_texts() {
        let number = |text: &str| Pickle::number(&Value::Text(text.to_owned()));
        assert_eq!(
            [number(" 2.5 "), number("12%"), number("inf"), number("x")],
            [Some(2.5), Some(12.0), None, None]
        );
        assert_eq!([Value::Number(f64::NAN), Value::Other].map(|value| Pickle::number(&value)), [None, None]);
    }

    #[test]
    fn what_is_no_pickle_is_refused_wherever_it_is_cut_or_changed() {
        // {'a': [1, (2.5, 'x')]} by Python's protocol 2.
        let whole = b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01]q\x02(K\x01G@\x04\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00xq\x03\x86q\x04es.";
        let pickle = Pickle::read(whole).expect("it is one");
        let list = pickle.member(pickle.root(), "a").expect("it is there");
        let inner = pickle.list(pickle.list(list)[1]);
        assert_eq!((pickle.list(list)[0], inner[0]), (&Value::Number(1.0), &Value::Number(2.5)));
        for length in 0..whole.len() {
            assert!(Pickle::read(&whole[..length]).is_err(), "cut to {length}");
        }
        for (at, byte) in (0..whole.len()).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
            let mut other = whole.to_vec();
            other[at] = byte;
            // It may be a pickle or not; it ends, and nothing breaks.
            let _ = Pickle::read(&other);
        }
    }

    #[test]
    fn objects_are_not_made() {
        // os.system('true') by protocol 0, and then the number 1 beside it.
        let pickle = Pickle::read(b"(lp0\ncos\nsystem\n(S'true'\ntRaI1\na.").expect("it is one");
        assert_eq!(pickle.list(pickle.root()), [&Value::Other, &Value::Number(1.0)]);
    }
}
