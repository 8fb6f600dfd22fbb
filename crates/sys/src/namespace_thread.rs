//! A place in the network: a network namespace of its own, and a thread that lives in it.
//!
//! What that thread does, the threads and programs it starts, and the sockets they open belong to the
//! namespace. It ends with its last holder: the place was dropped, and its threads and programs are gone.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

type NamespaceTask = Box<dyn FnOnce() + Send>;

/// A network namespace with a thread in it.
pub struct NamespaceThread {
    name: String,
    tasks: Option<mpsc::Sender<NamespaceTask>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for NamespaceThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("name", &self.name).finish_non_exhaustive()
    }
}

impl NamespaceThread {
    /// A new namespace, with its own view of `/sys` where that can be had.
    ///
    /// # Errors
    /// The kernel does not allow it: that needs root, or a user namespace of tidegate's.
    pub fn new(name: &str) -> io::Result<NamespaceThread> {
        let (commands, to_do) = mpsc::channel::<NamespaceTask>();
        let (tell, receiver) = mpsc::sync_channel(1);
        let live = move || {
            let entered = enter();
            let failed = entered.is_err();
            let _ = tell.send(entered);
            if failed {
                return;
            }
            for transaction in to_do {
                transaction();
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(live)?;
        receiver.recv().map_err(io::Error::other)??;
        Ok(NamespaceThread { name: name.to_owned(), tasks: Some(commands), thread: Some(thread) })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does something there and waits for it. What takes long starts a thread there.
    ///
    /// # Errors
    /// The place's thread is gone: something that was done there panicked.
    pub fn go<T: Send + 'static>(&self, transaction: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (tell, receiver) = mpsc::sync_channel(1);
        let transaction: NamespaceTask = Box::new(move || {
            let _ = tell.send(transaction());
        });
        let gone = || io::Error::other(format!("the thread of `{}` is gone", self.name));
        self.tasks.as_ref().ok_or_else(gone)?.send(transaction).map_err(|_| gone())?;
        receiver.recv().map_err(|_| gone())
    }
}

impl Drop for NamespaceThread {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes the calling thread into a new network namespace.
fn enter() -> io::Result<()> {
    // SAFETY: FILES is not among the flags, so descriptors stay as they are; only this thread moves.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET | UnshareFlags::NEWNS) }?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    // Without its own view of /sys, programs there see the links of our own namespace; most do not look.
    let _ = rustix::mount::mount_change("/", private).and_then(|()| {
        let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        rustix::mount::mount("sysfs", Path::new("/sys"), "sysfs", quiet, None)
    });
    crate::netlink::Links::open()?.up(1)
}

/// Does something in another network namespace and waits for it.
///
/// # Errors
/// It is none, or we may not enter it.
pub fn inside<T: Send + 'static>(
    namespace: impl AsFd + Send + 'static,
    transaction: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let there = move || {
        rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(transaction())
    };
    // Only that thread goes, and it ends there.
    std::thread::spawn(there).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sets a value under `/proc/sys` for the namespace of the calling thread.
///
/// # Errors
/// The kernel has no such value, or refuses it.
pub fn set(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(Path::new("/proc/sys").join(name), value)
}
