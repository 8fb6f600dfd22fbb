//! What a sandbox shall hold.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Which user namespace the program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// A new one in which root is a spare range of users outside, as far as its file systems can be mapped:
    /// needs root.
    Spare,
    /// A new one in which users are mapped to themselves, or only the caller is mapped.
    Namespace,
    /// The caller's own: needs root, for systems where user namespaces are forbidden.
    Caller,
}

/// What a sandbox shall hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spec {
    /// The executable that plays the stages and the tools; normally our own.
    pub executable: PathBuf,
    /// The programs' working directory.
    pub cwd: PathBuf,
    /// Network links that exist inside, beside `lo`.
    pub links: Vec<String>,
    /// Names under which the executable is found inside.
    pub tools: Vec<String>,
    /// Directories that hold these names, whether the host has them (the names, the directories) or not.
    /// Absolute, free of symbolic links.
    pub tool_dirs: Vec<PathBuf>,
    /// Directories and files that must stay visible even under `/tmp`, `/run` or `/dev`, which are new
    /// inside, and under home directories where those are hidden.
    pub keep: Vec<PathBuf>,
    /// Directories of `/sys` in memory, so that [`Spec::files`] can be put there. Those that the kernel lacks
    /// are left out.
    pub memory: Vec<PathBuf>,
    /// Files in those directories: absolute path, content.
    pub files: Vec<(PathBuf, String)>,
    /// Files whose content is reported after each program, see [`crate::watch::read`].
    pub watched: Vec<String>,
    /// Processes that may exist at once inside, where the kernel can hold to that: it refuses further ones.
    /// 0: no such limit.
    pub max_processes: u32,
    /// Bytes of memory that all inside may take together, the kernel's for them included, where a control
    /// group can be made that holds them to it. 0: no such limit.
    pub max_memory: u64,
    /// Do without overlays, as on kernels that have none: the host's files are then read-only inside.
    pub no_overlay: bool,
    /// Make no network links, as where the kernel has no kind of them without loading a module.
    pub no_links: bool,
    /// Hide home directories and the environment.
    pub private: bool,
}

impl Spec {
    /// As words of a command line.
    pub(crate) fn encode(&self) -> Vec<OsString> {
        let flag = |value: bool| OsString::from(u8::from(value).to_string());
        let mut words = vec![
            self.executable.clone().into(),
            self.cwd.clone().into(),
            flag(self.no_overlay),
            flag(self.no_links),
            flag(self.private),
            self.max_processes.to_string().into(),
            self.max_memory.to_string().into(),
        ];
        let lists: [Vec<OsString>; 7] = [
            self.links.iter().map(Into::into).collect(),
            self.tools.iter().map(Into::into).collect(),
            self.tool_dirs.iter().map(Into::into).collect(),
            self.keep.iter().map(Into::into).collect(),
            self.memory.iter().map(Into::into).collect(),
            self.files.iter().flat_map(|(path, text)| [path.into(), text.into()]).collect(),
            self.watched.iter().map(Into::into).collect(),
        ];
        for list in lists {
            words.push(list.len().to_string().into());
            words.extend(list);
        }
        words
    }

    /// From those words.
    pub(crate) fn decode(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let executable = words.next()?.into();
        let cwd = words.next()?.into();
        let no_overlay = words.next()? == OsStr::new("1");
        let no_links = words.next()? == OsStr::new("1");
        let private = words.next()? == OsStr::new("1");
        let max_processes = words.next()?.to_str()?.parse().ok()?;
        let max_memory = words.next()?.to_str()?.parse().ok()?;
        let mut list = || -> Option<Vec<OsString>> {
            let length: usize = words.next()?.to_str()?.parse().ok()?;
            (0..length).map(|_| words.next()).collect()
        };
        let texts = |list: Vec<OsString>| list.into_iter().map(|word| word.into_string().ok()).collect();
        let paths = |list: Vec<OsString>| list.into_iter().map(PathBuf::from).collect();
        let links: Option<Vec<String>> = texts(list()?);
        let tools: Option<Vec<String>> = texts(list()?);
        let (tool_dirs, keep, memory) = (paths(list()?), paths(list()?), paths(list()?));
        let pairs = list()?;
        let files =
            pairs.chunks_exact(2).map(|pair| Some((PathBuf::from(&pair[0]), pair[1].to_str()?.to_owned())));
        let files: Option<Vec<_>> = files.collect();
        let watched: Option<Vec<String>> = texts(list()?);
        Some(Self {
            executable,
            cwd,
            links: links?,
            tools: tools?,
            tool_dirs,
            keep,
            memory,
            files: files?,
            watched: watched?,
            max_processes,
            max_memory,
            no_overlay,
            no_links,
            private,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_survives_the_command_line() {
        let spec = Spec {
            executable: "/bin/true".into(),
            cwd: "/a b".into(),
            links: vec!["eth0".into()],
            tools: vec!["tc".into(), "ip".into()],
            tool_dirs: vec!["/usr/sbin".into()],
            keep: Vec::new(),
            memory: vec!["/sys/module".into()],
            files: vec![("/sys/module/x".into(), "1\n".into())],
            watched: vec!["/sys/class/net/*/mtu".into()],
            max_processes: 7,
            max_memory: 1 << 20,
            no_overlay: true,
            no_links: false,
            private: true,
        };
        assert_eq!(Spec::decode(spec.encode().into_iter()), Some(spec));
    }
}
