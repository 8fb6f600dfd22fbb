//! Two machines with a wire between them, in network namespaces that the test makes; what runs on the near
//! one.

use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::{LinkUpdate, Links};

/// Nothing that is waited for here takes longer on any machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// The device of either machine.
pub(crate) const WIRE: &str = "wire0";
/// Their addresses: the far one's, the near one's.
pub(crate) const ADDRESSES: [&str; 2] = ["10.8.0.1", "10.8.0.2"];

/// Both machines.
pub(crate) struct Wire {
    pub(crate) far: NamespaceThread,
    pub(crate) near: NamespaceThread,
    /// Where what runs on the near one keeps its files; gone with this.
    pub(crate) room: PathBuf,
}

impl Wire {
    /// Lays the wire; `None`, with the reason printed, where no namespaces may be made.
    pub(crate) fn lay(test: &str) -> Option<Wire> {
        let room = std::env::temp_dir().join(format!("tidegate-{test}-{}", std::process::id()));
        let made = NamespaceThread::new("far").and_then(|far| Ok((far, NamespaceThread::new("near")?)));
        let (far, near) = match made {
            Ok(made) => made,
            Err(error) => {
                println!("left out: no network namespace can be made here ({error})");
                return None;
            }
        };
        std::fs::create_dir_all(&room).expect("a directory");
        let wire = Wire { far, near, room };
        wire.plug(WIRE);
        Some(wire)
    }

    /// Puts a wire in, at a device of this name on the near machine.
    pub(crate) fn plug(&self, near: &'static str) {
        let there =
            self.far.go(|| File::open("/proc/thread-self/ns/net")).expect("place").expect("its namespace");
        self.near.go(move || Links::open()?.pair(near, WIRE, &there)).expect("place").expect("a wire");
        self.far.go(|| set_up(WIRE, 0)).expect("place");
        self.near.go(move || set_up(near, 1)).expect("place");
    }

    /// Takes it out.
    pub(crate) fn unplug(&self, near: &'static str) {
        self.near.go(move || Links::open()?.delete(near)).expect("place").expect("it was there");
    }

    /// Writes a file into the room.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.room.join(name);
        std::fs::write(&path, text).expect("it is written");
        path.to_string_lossy().into_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(super::TIDEGATE);
        command
            .args(words)
            .env("TIDEGATE_RUN", &self.room)
            .env("TIDEGATE_STATE", self.room.join("kept"))
            .env("SSH_CONNECTION", "")
            .stdin(Stdio::null());
        command
    }

    /// Has tidegate do something on the near machine, within the limit.
    pub(crate) fn tidegate(&self, words: &[&str]) -> Output {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.near.go(move || command.spawn()).expect("place").expect("it starts");
        let begun = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            if begun.elapsed() > LIMIT {
                child.kill().expect("it is ours");
                panic!("{words:?} goes on and on: {:?}", child.wait_with_output());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        child.wait_with_output().expect("it has ended")
    }

    /// Starts tidegate on the near machine; its output is written to the room's file `said`.
    pub(crate) fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        let log = File::create(self.room.join("said")).expect("a file");
        command.stdout(log.try_clone().expect("the same")).stderr(log);
        self.near.go(move || command.spawn()).expect("place").expect("it starts")
    }

    /// Where the daemon of a device answers.
    fn socket(&self, dev: &str) -> Option<PathBuf> {
        let rooms = std::fs::read_dir(&self.room).ok()?.flatten();
        rooms.map(|room| room.path().join(format!("{dev}.sock"))).find(|path| path.exists())
    }

    /// Asks the daemon of a device; `None`: there is none.
    pub(crate) fn ask(&self, dev: &str, request: &Value) -> Option<Value> {
        let mut stream = UnixStream::connect(self.socket(dev)?).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        stream.write_all(format!("{request}\n").as_bytes()).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// The links of the near machine.
    pub(crate) fn links(&self) -> Vec<String> {
        let links = self.near.go(tidegate_sys::link_monitor::links).expect("place").expect("links");
        links.into_iter().map(|link| link.name).collect()
    }

    /// Sends so many bytes to the far machine over TCP; panics if they do not arrive.
    pub(crate) fn transfer(&self, bytes: usize) {
        let listener = self.far.go(|| TcpListener::bind((ADDRESSES[0], 0))).expect("place").expect("listens");
        let to = listener.local_addr().expect("bound");
        let receiving = std::thread::spawn(move || -> std::io::Result<usize> {
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(LIMIT))?;
            std::io::copy(&mut stream, &mut std::io::sink()).map(|bytes| bytes as usize)
        });
        let sent = self.near.go(move || -> std::io::Result<()> {
            let mut stream = TcpStream::connect_timeout(&to, LIMIT)?;
            stream.set_write_timeout(Some(LIMIT))?;
            stream.write_all(&vec![7; bytes])
        });
        sent.expect("place").expect("it is sent");
        assert_eq!(receiving.join().expect("no panic").expect("received"), bytes);
    }

    /// Datagrams to the far machine while something is done, which may ask how many have arrived: how many
    /// were sent, and how many arrived.
    pub(crate) fn stream<R>(
        &self,
        every: Duration,
        meanwhile: impl FnOnce(&dyn Fn() -> u64) -> R,
    ) -> (R, u64, u64) {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
        let receiver = self.far.go(|| UdpSocket::bind((ADDRESSES[0], 0))).expect("place").expect("a socket");
        let to: SocketAddr = receiver.local_addr().expect("bound");
        let out = self.near.go(|| UdpSocket::bind((ADDRESSES[1], 0))).expect("place").expect("a socket");
        receiver.set_read_timeout(Some(Duration::from_millis(200))).expect("a limit");
        let (over, arrived): (Arc<AtomicBool>, Arc<AtomicU64>) = Default::default();
        let (is_over, count) = (Arc::clone(&over), Arc::clone(&arrived));
        let receiving = std::thread::spawn(move || {
            loop {
                match receiver.recv(&mut [0; 100]) {
                    Ok(_) => drop(count.fetch_add(1, Ordering::Relaxed)),
                    Err(_) if is_over.load(Ordering::Relaxed) => return,
                    Err(_) => {}
                }
            }
        });
        let is_over = Arc::clone(&over);
        let sending = std::thread::spawn(move || {
            let mut sent = 0;
            while !is_over.load(Ordering::Relaxed) {
                // A device that is gone for a while refuses.
                sent += u64::from(out.send_to(&[0; 90], to).is_ok());
                std::thread::sleep(every);
            }
            sent
        });
        let done = meanwhile(&|| arrived.load(Ordering::Relaxed));
        over.store(true, Ordering::Relaxed);
        let sent = sending.join().expect("no panic");
        receiving.join().expect("no panic");
        (done, sent, arrived.load(Ordering::Relaxed))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.room);
    }
}

fn set_up(name: &str, me: usize) {
    let mut links = Links::open().expect("netlink");
    // Otherwise the kernel sends packets of its own.
    let _ = namespace_thread::set("net/ipv6/conf/all/disable_ipv6", "1");
    links.change(name, &LinkUpdate { up: Some(true), ..LinkUpdate::default() }).expect("up");
    links.address(name, ADDRESSES[me].parse().expect("an address")).expect("an address");
    links.add_route(name, ADDRESSES[1 - me].parse().expect("an address")).expect("a way");
}

/// Waits until a condition is true, and names it if it never is.
pub(crate) fn until(what: &str, mut matches: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !matches() {
        assert!(begun.elapsed() < LIMIT, "{what}: not after {} s", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(5));
    }
}
