//! A device in a network namespace that somebody else made: `ip netns`, a container's, a process's.
//!
//! ```text
//! we ── start ──▶ helper: enters the namespace, makes the device, sends its descriptor back, ends
//! ```
//! A TUN device is there as long as a descriptor of it is open, and its addresses and routes with it. So when
//! all processes that have it are gone, by whatever end, nothing of it is left in the namespace.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::netlink::{LinkUpdate, Links};
use crate::tun::Tun;

const HELPER: &str = "tidegate-attach";
/// Where `ip netns` keeps its namespaces, and where older ones did.
const NAMED: [&str; 2] = ["/run/netns", "/var/run/netns"];
/// `NS_GET_USERNS`: the user namespace that owns a namespace (ioctl_nsfs(2)).
const GET_OWNER: Opcode = opcode::none(0xb7, 1);
/// Descriptors that are sent at once.
const MOST: usize = 8;
/// The helper's exit code where the system refused a step.
const DENIED: i32 = 4;
/// Letters of a helper's reason that are read.
const MAX_REASON: u64 = 4096;

/// A network namespace, as users name one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceName {
    name: String,
    path: PathBuf,
}

impl NamespaceName {
    /// `lab1` (of `ip netns`), `4711` (a process's), or a file such as `/proc/4711/ns/net`.
    ///
    /// # Errors
    /// There is no such namespace, in words.
    pub fn find(name: &str) -> Result<NamespaceName, String> {
        let found = |path: PathBuf| Ok(NamespaceName { name: name.to_owned(), path });
        if name.contains('/') {
            return match Path::new(name).exists() {
                true => found(name.into()),
                false => Err(format!("there is no file {name}")),
            };
        }
        let named = NAMED.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
        if let Some(path) = named.filter(|_| !name.is_empty() && name != "." && name != "..") {
            return found(path);
        }
        let Ok(pid) = name.parse::<u32>() else {
            return Err(format!(
                "no network namespace is called `{name}` (`ip netns list` shows them), and it is no process id"
            ));
        };
        let path = PathBuf::from(format!("/proc/{pid}/ns/net"));
        match std::fs::symlink_metadata(&path) {
            Ok(_) => found(path),
            Err(_) => Err(format!("there is no process {pid}, and no network namespace of that name")),
        }
    }
}

impl NamespaceName {
    /// Is it the one of this process, or of the machine's first? All their traffic would go behind the line.
    pub fn is_ours(&self) -> bool {
        let id = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let own = ["/proc/self/ns/net", "/proc/1/ns/net"].into_iter().filter_map(|path| id(Path::new(path)));
        id(&self.path).is_some_and(|this| own.into_iter().any(|own| own == this))
    }
}

impl fmt::Display for NamespaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A device to be made elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedDevice {
    /// What it is called there.
    pub device: String,
    /// Its address.
    pub address: IpAddr,
    /// Bytes of its largest packet.
    pub mtu: u32,
}

/// Why a namespace could not be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachError {
    /// The step that failed, in words.
    pub words: String,
    /// The system refused it.
    pub is_denied: bool,
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for AttachError {}

/// Makes a TUN device in another network namespace, with an address and the default route, which goes before
/// others there. Root may enter all; a user those of user namespaces that are his.
///
/// # Errors
/// The step that failed, in words.
pub fn attach(to: &NamespaceName, device: &AttachedDevice) -> Result<OwnedFd, AttachError> {
    let because = |words: String, is_denied: bool| AttachError { words: format!("{to}: {words}"), is_denied };
    let failed = |step: &str, error: &dyn fmt::Display| because(format!("could not {step}: {error}"), false);
    let (ours, theirs) = UnixStream::pair().map_err(|error| failed("make a socket", &error))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0(HELPER).arg(&to.path).args([&device.device, &device.address.to_string()]);
    command.arg(device.mtu.to_string()).stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed("start a helper", &error))?;
    // Our end of its socket is closed with the command.
    drop(command);
    let received = receive(ours.as_fd());
    let mut reason = String::new();
    if let Some(errors) = child.stderr.take() {
        let _ = errors.take(MAX_REASON).read_to_string(&mut reason);
    }
    let is_denied = child.wait().is_ok_and(|status| status.code() == Some(DENIED));
    match received {
        Ok(mut all) if all.len() == 1 => Ok(all.remove(0)),
        _ if !reason.trim().is_empty() => Err(because(reason.trim().to_owned(), is_denied)),
        Ok(_) => Err(because("the helper ended without a word".to_owned(), is_denied)),
        Err(error) => Err(failed("receive the device", &error)),
    }
}

/// Plays the helper if that is what this process was started for, and never returns then.
///
/// Must be called before any thread is started.
pub fn stage() {
    let mut words = std::env::args_os();
    if words.next().is_none_or(|name| name != OsStr::new(HELPER)) {
        return;
    }
    let words: Vec<OsString> = words.collect();
    let made = make(&words).and_then(|tun| {
        send(io::stdin().as_fd(), &[tun.as_fd()]).map_err(failed("could not send the device"))
    });
    std::process::exit(match made {
        Ok(()) => 0,
        Err((why, error)) => {
            eprintln!("{why}");
            let is_denied = error.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
            if is_denied { DENIED } else { 1 }
        }
    });
}

/// Why a step of the helper failed, in words, and the system's error.
type HelperError = (String, Option<io::Error>);

fn failed(step: &str) -> impl FnOnce(io::Error) -> HelperError {
    let step = step.to_owned();
    move |error| (format!("{step}: {error}"), Some(error))
}

/// In the helper: enters the namespace, and makes the device.
fn make(words: &[OsString]) -> Result<Tun, HelperError> {
    let wrong = |words: &str| (words.to_owned(), None);
    let [path, device, address, mtu] = words else { return Err(wrong("four words are needed")) };
    let text = |word: &OsString| word.to_str().map(str::to_owned).ok_or_else(|| wrong("a word is no text"));
    let (device, address, mtu) = (text(device)?, text(address)?, text(mtu)?);
    let address: IpAddr = address.parse().map_err(|_| wrong("that is no address"))?;
    let mtu: u32 = mtu.parse().map_err(|_| wrong("that is no packet size"))?;
    let namespace = File::open(path).map_err(failed(
        "could not open its network namespace (those of other users are open to root only)",
    ))?;
    enter(namespace.as_fd())
        .map_err(failed("could not enter it (root may enter all, a user those that are his)"))?;
    let mut links = Links::open().map_err(failed("could not open netlink"))?;
    let taken =
        || wrong(&format!("it has a device {device} already: it is behind a line; end that one first"));
    // A persistent device would be taken over.
    if links.index(&device).is_ok() {
        return Err(taken());
    }
    let tun = Tun::create(&device).map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY | libc::EINVAL) => taken(),
        _ => failed("could not make a TUN device there")(error),
    })?;
    let disabled = format!("net/ipv6/conf/{device}/disable_ipv6");
    let _ = crate::namespace_thread::set(&disabled, "1");
    let change = LinkUpdate { up: Some(true), mtu: Some(mtu), txqlen: Some(1000), ..LinkUpdate::default() };
    links.change(&device, &change).map_err(failed("could not bring up the device"))?;
    links.address(&device, address).map_err(failed("could not give it its address"))?;
    links.add_default_route(&device, address).map_err(failed("could not set the default route"))?;
    Ok(tun)
}

/// Enters a network namespace, by way of the user namespace that owns it where that is needed.
fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    match move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)) {
        Err(Errno::PERM) => {}
        other => return Ok(other?),
    }
    // SAFETY: NS_GET_USERNS takes no argument, and returns a new descriptor.
    let owner = unsafe { ioctl(namespace, GetOwner) }?;
    move_into_link_name_space(owner.as_fd(), Some(LinkNameSpaceType::User))?;
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

/// `NS_GET_USERNS`.
struct GetOwner;

// SAFETY: the request takes no argument, and its result is a new descriptor that belongs to the caller.
unsafe impl Ioctl for GetOwner {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        GET_OWNER
    }

    fn as_ptr(&mut self) -> *mut libc::c_void {
        core::ptr::null_mut()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut libc::c_void) -> rustix::io::Result<OwnedFd> {
        // SAFETY: the request succeeded, so this is a new descriptor, which has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(out as RawFd) })
    }
}

/// Sends descriptors over a socket, with one byte.
///
/// # Errors
/// The other end is gone, or there are more than eight.
pub fn send(socket: BorrowedFd<'_>, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if descriptors.len() > MOST || !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    sendmsg(socket, &[io::IoSlice::new(b"d")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the descriptors of one [`send`]; none: the other end is closed.
///
/// # Errors
/// It is no such socket.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [io::IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(all) => Some(all),
        _ => None,
    });
    Ok(descriptors.flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn descriptors_are_handed_over() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (mut reader, mut writer) = io::pipe().expect("a pipe");
        send(ours.as_fd(), &[writer.as_fd(), reader.as_fd()]).expect("sent");
        let got = receive(theirs.as_fd()).expect("received");
        assert_eq!(got.len(), 2);
        writer.write_all(b"x").expect("written");
        drop((writer, got));
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "x", "the pipe's last writer is gone");
        drop(ours);
        assert!(receive(theirs.as_fd()).expect("the end").is_empty());
    }

    #[test]
    fn namespaces_have_names_and_numbers() {
        let own = NamespaceName::find(&std::process::id().to_string()).expect("ours");
        assert_eq!(own.to_string(), std::process::id().to_string());
        assert!(own.is_ours());
        let other = NamespaceName { name: "other".into(), path: "/proc/self/ns/uts".into() };
        assert!(!other.is_ours());
        for (name, why) in [
            ("no-such-namespace", "no network namespace is called `no-such-namespace`"),
            ("4194999", "there is no process 4194999"),
            ("/no/such/file", "there is no file /no/such/file"),
            ("..", "no network namespace is called `..`"),
            ("", "no network namespace is called ``"),
        ] {
            let wrong = NamespaceName::find(name).expect_err(name);
            assert!(wrong.contains(why), "{wrong}");
        }
    }
}
