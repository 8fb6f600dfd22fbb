//! The protocol between a tool's shim and the parent over the socket: length-prefixed fields, little-endian.
//!
//! A request is the magic word, a byte of flags, then tool, working directory, network namespace, the
//! caller's words, the arguments and standard input (or why it could not be read), and files with their
//! content; a reply is a code, whether the tool then waits, the output, the errors and what changes in the
//! sandbox.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use super::effect;
use tidegate_shims::FileChange;
use tidegate_shims::{Call, Effect, Reply};

const MAGIC: [u8; 4] = *b"TGC3";
/// The longest request, in bytes, and so the longest field: a batch file of a hundred thousand commands fits.
pub(super) const MAX_REQUEST: usize = 32 << 20;
/// The most arguments of one call.
const MAX_ARGS: usize = 65_536;

const HAS_STDIN: u8 = 1;
const SILENCED: u8 = 2;
const REFUSED: u8 = 4;
const IN_NAMESPACE: u8 = 8;

/// A call as it travels, with what only the shim can know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) call: Call,
    /// The words of the process that issued the call: which script, where several run.
    pub(super) issuer: Vec<String>,
    /// The caller threw its errors away (`2>/dev/null`): it expects that this may fail.
    pub(super) silenced: bool,
    /// Files that scripts write to, each a path and its content.
    pub(super) files: Vec<(String, String)>,
    /// The shim had to refuse: the input it should pass on could not be read.
    pub(super) refused: Option<String>,
}

impl Request {
    /// About how many bytes it takes to keep it.
    pub(super) fn size(&self) -> usize {
        let call = &self.call;
        let words =
            |words: &[String]| words.iter().map(|word| word.len() + size_of::<String>()).sum::<usize>();
        call.tool.len()
            + words(&call.args)
            + call.stdin.as_ref().map_or(0, Vec::len)
            + call.cwd.as_os_str().len()
    }
}

/// Writes a request.
pub(super) fn write_request(to: &mut impl Write, request: &Request) -> io::Result<()> {
    let call = &request.call;
    let mut flags = 0;
    if call.stdin.is_some() {
        flags |= HAS_STDIN;
    }
    if request.silenced {
        flags |= SILENCED;
    }
    if request.refused.is_some() {
        flags |= REFUSED;
    }
    if call.netns.is_some() {
        flags |= IN_NAMESPACE;
    }
    let mut bytes = MAGIC.to_vec();
    bytes.push(flags);
    field(&mut bytes, call.tool.as_bytes());
    field(&mut bytes, call.cwd.to_string_lossy().as_bytes());
    field(&mut bytes, call.netns.as_deref().unwrap_or_default().as_bytes());
    list(&mut bytes, &request.issuer);
    list(&mut bytes, &call.args);
    field(&mut bytes, call.stdin.as_deref().unwrap_or_default());
    field(&mut bytes, request.refused.as_deref().unwrap_or_default().as_bytes());
    let files: Vec<String> =
        request.files.iter().flat_map(|(path, text)| [path.clone(), text.clone()]).collect();
    list(&mut bytes, &files);
    to.write_all(&bytes)
}

/// Reads a request of at most [`MAX_REQUEST`] bytes in all.
pub(super) fn read_request(from: &mut impl Read) -> io::Result<Request> {
    let from = &mut from.take(MAX_REQUEST as u64);
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    if head[..4] != MAGIC {
        return Err(io::Error::other("another program spoke on the socket"));
    }
    let flags = head[4];
    let tool = read_text(from)?;
    let cwd = PathBuf::from(read_text(from)?);
    let netns = read_text(from)?;
    let issuer = read_list(from)?;
    let args = read_list(from)?;
    let stdin = read_field(from)?;
    let refused = read_text(from)?;
    let files = read_list(from)?;
    Ok(Request {
        files: files.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
        call: Call {
            tool,
            args,
            stdin: (flags & HAS_STDIN != 0).then_some(stdin),
            cwd,
            netns: (flags & IN_NAMESPACE != 0).then_some(netns),
        },
        issuer,
        silenced: flags & SILENCED != 0,
        refused: (flags & REFUSED != 0).then_some(refused),
    })
}

/// Writes a reply.
pub(super) fn write_reply(to: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let mut bytes = vec![reply.code, u8::from(reply.waits)];
    field(&mut bytes, &reply.stdout);
    field(&mut bytes, &reply.stderr);
    let effects: Vec<Vec<String>> = files_of(reply).map(effect::words).collect();
    list(&mut bytes, &[effects.len().to_string()]);
    effects.iter().for_each(|words| list(&mut bytes, words));
    to.write_all(&bytes)
}

/// Reads a reply.
pub(super) fn read_reply(from: &mut impl Read) -> io::Result<Reply> {
    let mut head = [0; 2];
    from.read_exact(&mut head)?;
    let [code, waits] = head;
    let (stdout, stderr) = (read_field(from)?, read_field(from)?);
    let count: usize = read_list(from)?.first().and_then(|count| count.parse().ok()).unwrap_or(0);
    let effects: io::Result<Vec<Option<Effect>>> =
        (0..count.min(MAX_ARGS)).map(|_| Ok(effect::read(&read_list(from)?).map(Effect::File))).collect();
    let effects = effects?.into_iter().flatten().collect();
    Ok(Reply { code, stdout, stderr, effects, waits: waits != 0, at_fault: None })
}

/// What of a reply's effects the tool itself does.
pub(super) fn files_of(reply: &Reply) -> impl Iterator<Item = &FileChange> {
    reply.effects.iter().filter_map(|effect| match effect {
        Effect::File(change) => Some(change),
        Effect::Link(_) => None,
    })
}

fn field(to: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(MAX_REQUEST)];
    to.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    to.extend(bytes);
}

fn list(to: &mut Vec<u8>, words: &[String]) {
    let words = &words[..words.len().min(MAX_ARGS)];
    to.extend(u32::try_from(words.len()).unwrap_or(u32::MAX).to_le_bytes());
    for word in words {
        field(to, word.as_bytes());
    }
}

fn read_length(from: &mut impl Read, limit: usize) -> io::Result<usize> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    let length = usize::try_from(u32::from_le_bytes(bytes)).map_err(io::Error::other)?;
    if length > limit {
        return Err(io::Error::other(format!("a field of {length} bytes or words: {limit} is the limit")));
    }
    Ok(length)
}

fn read_field(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = read_length(from, MAX_REQUEST)?;
    let mut bytes = Vec::new();
    // Grows as the bytes come: a length alone cannot make us allocate.
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

fn read_text(from: &mut impl Read) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_field(from)?).into_owned())
}

fn read_list(from: &mut impl Read) -> io::Result<Vec<String>> {
    let length = read_length(from, MAX_ARGS)?;
    (0..length).map(|_| read_text(from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            call: Call {
                tool: "tc".into(),
                args: vec!["-batch".into(), String::new(), "-".into()],
                stdin: Some(b"qdisc show\n".to_vec()),
                cwd: "/tmp".into(),
                netns: Some("blue".into()),
            },
            issuer: vec!["sh".into(), "x.sh".into()],
            silenced: true,
            files: vec![("/sys/class/net/eth0/mtu".into(), "1500".into())],
            refused: None,
        }
    }

    #[test]
    fn requests_and_replies_survive_the_wire() {
        let mut bytes = Vec::new();
        write_request(&mut bytes, &request()).unwrap();
        assert_eq!(read_request(&mut &bytes[..]).unwrap(), request());
        let effects = vec![Effect::File(FileChange::Remove { path: "/sys/x".into() })];
        let reply = Reply { effects, waits: true, ..Reply::error(2, "Error: x\n") };
        let mut bytes = Vec::new();
        write_reply(&mut bytes, &reply).unwrap();
        assert_eq!(read_reply(&mut &bytes[..]).unwrap(), reply);
    }

    #[test]
    fn a_request_is_bounded_as_a_whole_not_by_field() {
        // Two fields that are each as long as may be.
        let mut bytes = MAGIC.to_vec();
        bytes.push(0);
        for _ in 0..2 {
            bytes.extend(u32::try_from(MAX_REQUEST).unwrap().to_le_bytes());
            bytes.resize(bytes.len() + MAX_REQUEST, b'x');
        }
        let error = read_request(&mut &bytes[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_an_error_or_a_request_never_a_panic() {
        let mut bytes = Vec::new();
        write_request(&mut bytes, &request()).unwrap();
        for cut in 0..bytes.len() {
            assert!(read_request(&mut &bytes[..cut]).is_err(), "cut at {cut}");
            let mut flipped = bytes.clone();
            flipped[cut] ^= 0xff;
            let _ = read_request(&mut &flipped[..]);
        }
    }
}
