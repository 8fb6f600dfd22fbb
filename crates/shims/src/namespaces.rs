//! Network namespaces: machines of their own beside the one that a script begins on.
//!
//! `ip netns add` makes one, `ip netns exec NAME` and `-n NAME` call a tool in one, `ip link set … netns
//! NAME` moves a link into one. What the tools say was asked of iproute2 6.1.

use crate::call::{Answer, Call, Reply};
use crate::containers::{self, ContainerCall};
use crate::machine::Machine;
use crate::shim::ToolShim;
use crate::{ip, world};
use std::path::PathBuf;
use std::rc::Rc;
use tidegate_gateway::DeviceSpec;
use tidegate_packet::{Pool, Seeded};
use tidegate_policy::{LinkDriver, LinkOp, Op};

/// The most namespaces of a script.
const MAX_NAMESPACES: usize = 256;
/// The longest name of one, bytes: it is a file's.
const MAX_NAME: usize = 255;
/// Where the namespace is that the first process is in, by the number of that process.
const OF_INIT: &str = "1";
/// Numbers of processes from here on are containers': Linux gives none that is higher (2 to the 22nd).
const FIRST_PROCESS: usize = 1 << 22;

/// The machine that a script begins on, and those of its namespaces; each has a number, the first's is
/// [`Namespaces::FIRST`].
pub struct Namespaces<'m> {
    first: ToolShim<'m>,
    others: Vec<Namespace>,
    /// The ends of each cable that was laid (veth), by their machines and names.
    cables: Vec<[(usize, String); 2]>,
    /// Those that went with a namespace.
    gone: Vec<[(usize, String); 2]>,
    /// Ends whose other end went with its namespace: they go when something asks for their machine again, so
    /// that a script which cleans up in the end leaves to see what it had.
    loose: Vec<(usize, String)>,
    /// Has the script made a namespace? Then those that it names and did not make are not there.
    makes: bool,
    is_over: Option<Rc<dyn Fn() -> bool>>,
}

/// A network namespace of a script.
pub struct Namespace {
    /// Its name, as `ip netns` has it.
    pub name: String,
    /// What was configured in it.
    pub machine: Machine,
    /// The script deleted it: the machine is as it was before that.
    pub is_deleted: bool,
    /// It is a container's, or a process's: `ip netns` does not list it.
    pub is_container: bool,
    /// What was drawn and kept while it was configured.
    pool: Pool,
    draws: Seeded,
}

impl<'m> Namespaces<'m> {
    /// The number of the machine that the script begins on.
    pub const FIRST: usize = 0;

    /// A script's machine, before it has made any other.
    pub fn new(first: ToolShim<'m>) -> Namespaces<'m> {
        Namespaces {
            first,
            others: Vec::new(),
            cables: Vec::new(),
            gone: Vec::new(),
            loose: Vec::new(),
            makes: false,
            is_over: None,
        }
    }

    /// The machine that the script begins on.
    pub fn first(&mut self) -> &mut ToolShim<'m> {
        &mut self.first
    }

    /// The machine that the script begins on, and its namespaces.
    pub(crate) fn machines(&self) -> (&Machine, &[Namespace]) {
        (self.first.machine, &self.others)
    }

    /// The ends of each cable, by the numbers of their machines and names, also of those that went with a
    /// namespace.
    pub(crate) fn laid(&self) -> impl Iterator<Item = &[(usize, String); 2]> {
        self.cables.iter().chain(&self.gone)
    }

    /// The namespaces, in the order in which they were made: the one with the number 1 is the first.
    pub fn into_others(self) -> Vec<Namespace> {
        self.others
    }

    /// The machine that a call is about. A namespace that a script names and that it does not make is taken
    /// to be there, as its devices are, if it makes none at all.
    ///
    /// # Errors
    /// There is no such namespace: the tool's answer.
    pub fn machine_of(&mut self, call: &Call) -> Result<usize, Reply> {
        let Some(name) = call.namespace() else { return Ok(Self::FIRST) };
        self.named(name).ok_or_else(|| {
            let text = format!("Cannot open network namespace \"{name}\": No such file or directory\n");
            Reply::error(255, text)
        })
    }

    /// How many operations and how many commands a machine has carried out so far.
    pub fn counts(&self, machine: usize) -> (usize, usize) {
        match machine.checked_sub(1).and_then(|at| self.others.get(at)) {
            Some(other) => (other.machine.log.len(), other.machine.carried.len()),
            None => self.first.counts(),
        }
    }

    /// Answers a call on a machine that [`Namespaces::machine_of`] gave.
    pub fn answer_on(&mut self, machine: usize, call: &Call) -> Reply {
        let call = &call.without_namespace();
        let before = self.counts(machine).0;
        let mut reply = match self.about_namespaces(machine, call) {
            Some(reply) => reply,
            None => {
                self.drop_loose(machine);
                let reply = self.on(machine, |shim| shim.answer(call));
                self.follow_cables(machine, before);
                reply
            }
        };
        // The files and links of the sandbox are those of the first.
        if machine != Self::FIRST {
            reply.effects.clear();
        }
        reply
    }

    /// The number of a namespace; one that is taken to be there is made.
    fn named(&mut self, name: &str) -> Option<usize> {
        if let Some(at) = self.of_process(name) {
            return Some(at);
        }
        let found = self.others.iter().rposition(|other| other.name == name && !other.is_deleted);
        match found {
            Some(at) => Some(at + 1),
            None if self.makes || !self.first.machine.grows || !is_name(name) => None,
            None => self.make(name, true),
        }
    }

    fn make(&mut self, name: &str, grows: bool) -> Option<usize> {
        if self.others.len() >= MAX_NAMESPACES {
            return None;
        }
        let mut machine = self.first.machine.beside(grows);
        machine.host.add("lo", LinkDriver::Loopback, grows);
        self.others.push(Namespace {
            name: name.to_owned(),
            machine,
            is_deleted: false,
            is_container: false,
            pool: Pool::new(0),
            draws: Seeded::new(1),
        });
        Some(self.others.len())
    }

    /// Does something with the tools of a machine.
    fn on<R>(&mut self, machine: usize, act: impl FnOnce(&mut ToolShim<'_>) -> R) -> R {
        let Some(other) = machine.checked_sub(1).and_then(|at| self.others.get_mut(at)) else {
            return act(&mut self.first);
        };
        let mut shim = other.machine.shim(&mut other.pool, &mut other.draws);
        if let Some(is_over) = self.is_over.clone() {
            shim.begin(Box::new(move || is_over()));
        }
        act(&mut shim)
    }
}

impl Answer for Namespaces<'_> {
    fn answer(&mut self, call: &Call) -> Reply {
        match self.machine_of(call) {
            Ok(machine) => self.answer_on(machine, call),
            Err(reply) => reply,
        }
    }

    fn begin(&mut self, is_over: Box<dyn Fn() -> bool>) {
        let shared: Rc<dyn Fn() -> bool> = Rc::from(is_over);
        self.is_over = Some(Rc::clone(&shared));
        self.first.begin(Box::new(move || shared()));
    }

    fn world(&mut self, devices: &[String]) -> Vec<(PathBuf, String)> {
        self.first.world(devices)
    }

    fn files_written(&mut self, files: &[(String, String)]) {
        self.first.files_written(files);
    }
}

/// What ip does with namespaces.
impl Namespaces<'_> {
    /// The answer to a call that is about namespaces; `None`: it is about one machine.
    fn about_namespaces(&mut self, machine: usize, call: &Call) -> Option<Reply> {
        if let Some(asked) = containers::read(&call.tool, &call.args) {
            return Some(self.contained(&asked));
        }
        if call.tool != "ip" {
            return None;
        }
        let (flags, words) = call.args.split_at_checked(call.options().1)?;
        let (object, rest) = words.split_first()?;
        if is_netns(object) {
            let all = flags.iter().any(|flag| matches!(flag.as_str(), "-a" | "-all"));
            return Some(self.netns(machine, rest, all));
        }
        let (verb, rest) = rest.split_first()?;
        let is_link = object.starts_with('l') && "link".starts_with(object.as_str());
        if !is_link || !rest.iter().any(|word| word == "netns") {
            return None;
        }
        match verb.as_str() {
            "set" | "s" | "change" => {
                self.drop_loose(machine);
                Some(self.move_link(machine, rest, &call.args))
            }
            "add" | "a" | "new" => {
                self.drop_loose(machine);
                Some(self.add_elsewhere(machine, rest, &call.args))
            }
            _ => None,
        }
    }

    /// What an engine of containers, or `nsenter`, answers. A container is taken to be there.
    fn contained(&mut self, asked: &ContainerCall<'_>) -> Reply {
        let place = match asked {
            ContainerCall::Nothing => return Reply::ok(),
            ContainerCall::Other(what) => return ours(what),
            ContainerCall::Run { place, .. } => place,
            ContainerCall::Pid { container } | ContainerCall::Make { container } => container,
        };
        let found = self.others.iter().rposition(|other| other.name == *place && !other.is_deleted);
        let there = match self.of_process(place).or(found.map(|at| at + 1)) {
            None if self.first.machine.grows && is_name(place) => {
                let made = self.make(place, true);
                if let Some(at) = made {
                    self.others[at - 1].is_container = true;
                }
                made
            }
            there => there,
        };
        match (there, asked) {
            (None, _) => ours(&format!("the container or process {place}")),
            (Some(at), ContainerCall::Pid { .. }) => Reply::text(format!("{}\n", FIRST_PROCESS + at)),
            (Some(_), ContainerCall::Make { container }) => Reply::text(format!("{container}\n")),
            // The tool runs what follows.
            (Some(_), _) => Reply::ok(),
        }
    }

    /// The machine of a process: the one that a script begins on has the first, each container one that its
    /// engine printed.
    fn of_process(&self, number: &str) -> Option<usize> {
        if number == OF_INIT && !self.there().any(|there| there == number) {
            return Some(Self::FIRST);
        }
        let at = number.parse::<usize>().ok()?.checked_sub(FIRST_PROCESS)?;
        (1..=self.others.len()).contains(&at).then_some(at)
    }

    fn netns(&mut self, machine: usize, words: &[String], all: bool) -> Reply {
        let verb = words.first().map_or("list", String::as_str);
        let is = |of: &str| of.starts_with(verb);
        let name = words.get(1).map(String::as_str);
        let unsaid = || Reply::error(1, "No netns name specified\n");
        match name {
            _ if is("list") || is("show") || is("lst") => self.list(),
            _ if is("add") => name.map_or_else(unsaid, |name| self.add(name)),
            None if is("delete") && all => {
                let there: Vec<String> = self.there().map(str::to_owned).collect();
                there.iter().for_each(|name| drop(self.delete(name)));
                Reply::ok()
            }
            _ if is("delete") => name.map_or_else(unsaid, |name| self.delete(name)),
            _ if is("identify") => {
                let own = machine.checked_sub(1).and_then(|at| self.others.get(at));
                Reply::text(format!("{}\n", own.map_or("", |own| &own.name)))
            }
            Some(name) if is("pids") => self.named(name).map_or_else(|| missing(name), |_| Reply::ok()),
            _ if is("exec") && !all => match (name, words.get(2)) {
                (None, _) => unsaid(),
                (Some(_), None) => Reply::error(1, "No command specified\n"),
                // The tool runs what follows.
                (Some(name), Some(_)) => self.named(name).map_or_else(|| missing(name), |_| Reply::ok()),
            },
            _ => ours(&format!("ip netns {verb}")),
        }
    }

    /// The names of the namespaces, the latest first.
    fn there(&self) -> impl Iterator<Item = &str> {
        let there = self.others.iter().rev().filter(|other| !other.is_deleted && !other.is_container);
        there.map(|other| other.name.as_str())
    }

    fn list(&self) -> Reply {
        Reply::text(self.there().map(|name| format!("{name}\n")).collect::<String>())
    }

    fn add(&mut self, name: &str) -> Reply {
        if !is_name(name) {
            return Reply::error(255, format!("Invalid netns name \"{name}\"\n"));
        }
        if self.there().any(|there| there == name) {
            let file = format!("Cannot create namespace file \"/run/netns/{name}\": File exists\n");
            return Reply::error(1, file);
        }
        if self.make(name, false).is_none() {
            return ours(&format!("more than {MAX_NAMESPACES} network namespaces"));
        }
        self.makes = true;
        self.first.did("ip", &["netns", "add", name].map(str::to_owned));
        Reply::ok()
    }

    /// A namespace goes, and with it the cables that lead out of it.
    fn delete(&mut self, name: &str) -> Reply {
        let Some(at) = self.others.iter().rposition(|other| other.name == name && !other.is_deleted) else {
            // One that is taken to be there goes, and nothing is known of it.
            if !self.makes && is_name(name) {
                return Reply::ok();
            }
            let text =
                format!("Cannot remove namespace file \"/run/netns/{name}\": No such file or directory\n");
            return Reply::error(1, text);
        };
        self.others[at].is_deleted = true;
        let (gone, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.cables)
            .into_iter()
            .partition(|cable: &[(usize, String); 2]| cable.iter().any(|(machine, _)| *machine == at + 1));
        self.cables = left;
        let others = gone.iter().flatten().filter(|(machine, _)| *machine != at + 1).cloned();
        self.loose.extend(others);
        self.gone.extend(gone);
        self.first.did("ip", &["netns", "del", name].map(str::to_owned));
        Reply::ok()
    }

    /// The ends of a machine that lead nowhere any more go.
    fn drop_loose(&mut self, machine: usize) {
        let all = std::mem::take(&mut self.loose);
        let (gone, left): (Vec<_>, _) = all.into_iter().partition(|(own, _)| *own == machine);
        self.loose = left;
        for (_, end) in gone {
            let _ = self.on(machine, |shim| shim.apply(Op::Link(LinkOp::Delete { name: end })));
        }
    }

    /// `ip link set LINK netns NAME …`: what else is said of the link is done where it goes.
    fn move_link(&mut self, from: usize, words: &[String], all: &[String]) -> Reply {
        let (rest, netns) = match without_netns(words) {
            Ok(split) => split,
            Err(reply) => return reply,
        };
        let dev = match rest.iter().position(|word| word == "dev") {
            Some(at) => rest.get(at + 1),
            None => rest.first(),
        };
        let Some(dev) = dev.cloned() else {
            let text = "Not enough information: \"dev\" argument is required.\n";
            return Reply::error(255, text);
        };
        let refused = self.on(from, |shim| {
            shim.machine.grow_one(&dev);
            world::meet_all(shim);
            let line = ["link", "set", "dev", &dev].map(str::to_owned);
            shim.machine.gateway.device(&dev).is_none().then(|| ip::answer(shim, &line, None))
        });
        if let Some(reply) = refused {
            return reply;
        }
        let to = match self.meant(&netns) {
            Ok(to) => to,
            Err(reply) => return reply,
        };
        if to != from {
            if let Err(reply) = self.carry(from, to, &dev) {
                return reply;
            }
            self.on(from, |shim| shim.did("ip", all));
        }
        // The link alone says nothing more.
        if rest.len() <= 2 && (rest.len() == 1 || rest[0] == "dev") {
            return Reply::ok();
        }
        let mut line = vec!["link".to_owned(), "set".to_owned()];
        line.extend(rest);
        let before = self.counts(to).0;
        let reply = self.on(to, |shim| ip::answer(shim, &line, None));
        self.follow_cables(to, before);
        reply
    }

    /// `ip link add … netns NAME`: the link, or the other end of a cable, comes into being there.
    fn add_elsewhere(&mut self, from: usize, words: &[String], all: &[String]) -> Reply {
        let kind_at = words.iter().position(|word| word == "type").unwrap_or(words.len());
        let (own, of_kind) = words.split_at(kind_at);
        let mut line = vec!["link".to_owned(), "add".to_owned()];
        let mut goes = Vec::new();
        for part in [own, of_kind] {
            if !part.iter().any(|word| word == "netns") {
                goes.push(None);
                line.extend_from_slice(part);
                continue;
            }
            let (rest, netns) = match without_netns(part) {
                Ok(split) => split,
                Err(reply) => return reply,
            };
            match self.meant(&netns) {
                Ok(to) => goes.push(Some(to)),
                Err(reply) => return reply,
            }
            line.extend(rest);
        }
        let before = self.counts(from).0;
        let reply = self.on(from, |shim| ip::answer(shim, &line, None));
        let made = self.on(from, |shim| match shim.machine.log.get(before..).unwrap_or_default() {
            [.., Op::Link(LinkOp::Add { name, kind })] => Some((name.clone(), kind.clone())),
            _ => None,
        });
        let Some((name, kind)) = made.filter(|_| reply.code == 0) else {
            // Two ends of one name are made in two namespaces, and here they would meet.
            return if reply.code == 0 { ours("ip link add … netns with further settings") } else { reply };
        };
        self.follow_cables(from, before);
        let peer = if let LinkDriver::Veth { peer } = kind { Some(peer) } else { None };
        for (link, to) in [Some(name), peer].into_iter().zip(goes) {
            let (Some(link), Some(to)) = (link, to.filter(|to| *to != from)) else { continue };
            if let Err(reply) = self.carry(from, to, &link) {
                return reply;
            }
        }
        self.on(from, |shim| {
            // What made it is what the script said.
            shim.machine.carried.pop();
            shim.did("ip", all);
        });
        reply
    }

    /// The namespace behind the word `netns` of a link.
    fn meant(&mut self, name: &str) -> Result<usize, Reply> {
        if let Some(at) = self.named_or_number(name) {
            return Ok(at);
        }
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ours("ip link set … netns with the number of a process"));
        }
        Err(Reply::error(255, format!("Error: argument \"{name}\" is wrong: Invalid \"netns\" value\n\n")))
    }

    fn named_or_number(&mut self, name: &str) -> Option<usize> {
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        let is_there = self.there().any(|there| there == name);
        match self.of_process(name) {
            Some(at) => Some(at),
            None if is_number && !is_there => None,
            None => self.named(name),
        }
    }

    /// Takes a link from one machine to another, where it is down, and without its qdiscs.
    fn carry(&mut self, from: usize, to: usize, dev: &str) -> Result<(), Reply> {
        self.drop_loose(to);
        let link = self.on(from, |shim| {
            let id = shim.machine.gateway.device(dev)?;
            let kind = shim.machine.host.links.get(dev)?.kind.clone();
            Some((kind, shim.machine.gateway.spec(id)))
        });
        let Some((kind, spec)) = link else {
            return Err(Reply::error(1, format!("Cannot find device \"{dev}\"\n")));
        };
        if kind == LinkDriver::Loopback {
            return Err(Reply::error(2, "RTNETLINK answers: Invalid argument\n"));
        }
        let is_taken = self.on(to, |shim| {
            ip::make_room(shim, dev);
            shim.machine.gateway.device(dev).is_some()
        });
        if is_taken {
            return Err(Reply::error(2, "RTNETLINK answers: File exists\n"));
        }
        let leave = Op::Link(LinkOp::Delete { name: dev.to_owned() });
        if let Err(error) = self.on(from, |shim| shim.apply(leave)) {
            return Err(Reply::error(2, format!("{error}\n")));
        }
        self.on(to, |shim| shim.machine.arrive(dev, kind, spec));
        let end = self.cables.iter_mut().flatten().find(|(at, name)| *at == from && name == dev);
        if let Some(end) = end {
            end.0 = to;
        }
        Ok(())
    }

    /// Takes in which cables were laid, renamed and removed by the operations of a machine from one on. A
    /// cable goes with either end.
    fn follow_cables(&mut self, machine: usize, from: usize) {
        let log = self.on(machine, |shim| shim.machine.log.get(from..).unwrap_or_default().to_vec());
        for op in log {
            match op {
                Op::Link(LinkOp::Add { name, kind: LinkDriver::Veth { peer } }) => {
                    self.cables.push([(machine, name), (machine, peer)]);
                }
                Op::Link(LinkOp::Rename { name, to }) => {
                    let own = |end: &&mut (usize, String)| end.0 == machine && end.1 == name;
                    if let Some(end) = self.cables.iter_mut().flatten().find(own) {
                        end.1 = to;
                    }
                }
                Op::Link(LinkOp::Delete { name }) => {
                    let is_end = |end: &(usize, String)| end.0 == machine && end.1 == name;
                    let Some(at) = self.cables.iter().position(|cable| cable.iter().any(is_end)) else {
                        continue;
                    };
                    let cable = self.cables.swap_remove(at);
                    for (other, end) in cable.into_iter().filter(|end| !is_end(end)) {
                        // On one machine the tool has removed it.
                        if other != machine {
                            let op = Op::Link(LinkOp::Delete { name: end });
                            let _ = self.on(other, |shim| shim.apply(op));
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

impl Machine {
    /// A machine of another namespace of the same kernel, without devices.
    fn beside(&self, grows: bool) -> Machine {
        let mut machine = Machine::new([], DeviceSpec::default());
        machine.gateway.set_kernel(self.gateway.kernel());
        machine.now = self.now;
        machine.tc = self.tc;
        machine.warns = self.warns;
        machine.classes_in_json = self.classes_in_json;
        machine.distributions = std::sync::Arc::clone(&self.distributions);
        machine.grows = true;
        machine.host.is_bare = !grows;
        machine
    }

    /// Takes in a link that another namespace had.
    fn arrive(&mut self, name: &str, kind: LinkDriver, spec: DeviceSpec) {
        let id = self.gateway.add_device(name, spec);
        self.gateway.begin_down(id);
        self.host.add(name, kind, false);
        self.host.arrived.insert(name.to_owned(), spec);
    }
}

impl Call {
    /// The network namespace that the call is about: the one of `-n`, or the one that it was made in.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.netns_option().map(|at| self.args[at + 1].as_str()).or(self.netns.as_deref())
    }

    /// The call without what says where it is made.
    fn without_namespace(&self) -> Call {
        let mut call = self.clone();
        if let Some(at) = self.netns_option() {
            call.args.drain(at..at + 2);
        }
        call.netns = None;
        call
    }

    /// The place of `-n`, behind which a name stands.
    fn netns_option(&self) -> Option<usize> {
        let is_it = |at: &usize| {
            let name = self.args[*at].trim_start_matches('-');
            !name.is_empty() && "netns".starts_with(name)
        };
        let at = self.options().0.into_iter().find(is_it)?;
        (at + 1 < self.args.len()).then_some(at)
    }
}

/// What `ip netns exec`, `docker exec`, `nsenter` and their like run, and in which namespace.
///
/// ```
/// let words = ["-4", "netns", "exec", "blue", "tc", "qdisc"].map(str::to_owned);
/// assert_eq!(tidegate_shims::run_in_namespace("ip", &words), Some(("blue", &words[4..])));
/// assert_eq!(tidegate_shims::run_in_namespace("tc", &words), None);
/// ```
#[must_use]
pub fn run_in_namespace<'w>(tool: &str, args: &'w [String]) -> Option<(&'w str, &'w [String])> {
    if let Some(ContainerCall::Run { place, words }) = containers::read(tool, args) {
        return Some((place, words));
    }
    if tool != "ip" {
        return None;
    }
    let call =
        Call { tool: tool.to_owned(), args: args.to_vec(), stdin: None, cwd: PathBuf::new(), netns: None };
    let [object, verb, name, command @ ..] = args.get(call.options().1..)? else { return None };
    let runs = is_netns(object) && verb.starts_with('e') && "exec".starts_with(verb.as_str());
    (runs && !command.is_empty()).then_some((name.as_str(), command))
}

fn is_netns(object: &str) -> bool {
    object.len() > 2 && "netns".starts_with(object)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.contains('/') && name != "." && name != ".."
}

/// Words without the first `netns NAME`, and the name.
fn without_netns(words: &[String]) -> Result<(Vec<String>, String), Reply> {
    let at = words.iter().position(|word| word == "netns").unwrap_or(words.len());
    let Some(name) = words.get(at + 1).cloned() else {
        return Err(Reply::error(255, "Command line is not complete. Try option \"help\"\n"));
    };
    let rest = words[..at].iter().chain(&words[at + 2..]).cloned().collect();
    Ok((rest, name))
}

fn missing(name: &str) -> Reply {
    Reply::error(255, format!("Cannot open network namespace \"{name}\": No such file or directory\n"))
}

/// What tidegate does not do.
fn ours(what: &str) -> Reply {
    Reply::error(1, format!("tidegate: {what} is not supported in this version\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What calls print and return, on a machine with `eth0`.
    fn said(lines: &[&str]) -> Vec<String> {
        let mut machine = Machine::for_script(["eth0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let mut namespaces = Namespaces::new(machine.shim(&mut pool, &mut draws));
        namespaces.world(&["eth0".to_owned()]);
        let call = |line: &&str| {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let mut netns = None;
            let reply = loop {
                let tool = words.remove(0);
                let call = Call { tool, args: words, stdin: None, cwd: PathBuf::new(), netns };
                let reply = namespaces.answer(&call);
                match run_in_namespace(&call.tool, &call.args).filter(|_| reply.code == 0) {
                    Some((name, inside)) => (netns, words) = (Some(name.to_owned()), inside.to_vec()),
                    None => break reply,
                }
            };
            let text = [reply.stdout, reply.stderr].concat();
            format!("{} {}", reply.code, String::from_utf8_lossy(&text).trim_end())
        };
        lines.iter().map(call).collect()
    }

    /// Asked of ip of iproute2 6.1 in a mount and network namespace of its own.
    #[test]
    fn namespaces_are_answered_as_ip_does() {
        let rows = [
            ("ip netns add h1", "0 "),
            ("ip netns add h1", "1 Cannot create namespace file \"/run/netns/h1\": File exists"),
            (
                "ip netns exec nope tc qdisc",
                "255 Cannot open network namespace \"nope\": No such file or directory",
            ),
            (
                "ip netns del nope",
                "1 Cannot remove namespace file \"/run/netns/nope\": No such file or directory",
            ),
            ("ip netns add", "1 No netns name specified"),
            ("ip netns exec", "1 No netns name specified"),
            ("ip netns exec h1", "1 No command specified"),
            ("ip netns add a/b", "255 Invalid netns name \"a/b\""),
            ("ip netns add ..", "255 Invalid netns name \"..\""),
            ("ip netns add h2", "0 "),
            ("ip netns", "0 h2\nh1"),
            ("ip netns identify", "0 "),
            ("ip netns exec h1 ip netns identify", "0 h1"),
            ("ip link add v0 type veth peer name v1", "0 "),
            ("ip link set v0 netns nope", "255 Error: argument \"nope\" is wrong: Invalid \"netns\" value"),
            ("ip link set ifb9 netns h1", "1 Cannot find device \"ifb9\""),
            ("ip link set v0 netns h1", "0 "),
            ("ip link set v0 up", "1 Cannot find device \"v0\""),
            ("ip -n nope link", "255 Cannot open network namespace \"nope\": No such file or directory"),
            ("tc -n nope qdisc", "255 Cannot open network namespace \"nope\": No such file or directory"),
            ("ip link add e0 netns h1 type veth peer name e1 netns h2", "0 "),
            ("ip -n h2 link set e1 name e0 up", "0 "),
            ("tc -n h2 qdisc show dev e0", "0 qdisc noqueue 0: root refcnt 2"),
            ("ip net e h1 tc qdisc add dev e0 root fq_codel", "0 "),
            ("ip netns exec h1 tc -s qdisc add dev eth0 root fq", "1 Cannot find device \"eth0\""),
            ("ip netns del h1", "0 "),
            ("ip link set v1 up", "1 Cannot find device \"v1\""),
            ("tc -n h2 qdisc show dev e0", "1 Cannot find device \"e0\""),
            ("ip -all netns del", "0 "),
            ("ip netns list", "0 "),
        ];
        let lines: Vec<&str> = rows.iter().map(|(line, _)| *line).collect();
        for ((line, expected), found) in rows.iter().zip(said(&lines)) {
            // What tidegate explains behind the tool's own words is not the tool's.
            let own = found.split("\nip: ").next().unwrap_or_default();
            let own = own.split("\ntc: ").next().unwrap_or_default();
            assert_eq!(own, *expected, "{line}");
        }
    }

    #[test]
    fn containers_are_machines_of_their_own() {
        let found = said(&[
            "docker exec web tc qdisc add dev eth0 root fq",
            "docker exec -i web tc qdisc show dev eth0",
            "tc qdisc show dev eth0",
            "docker inspect -f {{.State.Pid}} web",
            "nsenter -t 4194305 -n tc qdisc show dev eth0",
            "nsenter -t 1 -n tc qdisc show dev eth0",
            "ip netns add other",
            "docker exec db tc qdisc add dev eth0 root fq",
            "ip link add v0 type veth peer name v1",
            "ip link set v1 netns 4194305",
            "docker exec web ip link show v1",
            "ip netns list",
            "docker ps",
            "docker exec a/b tc qdisc",
        ]);
        let fq = "qdisc fq 8001: root refcnt 2 limit 10000p";
        assert!(found[0] == "0 " && found[1].contains(fq) && found[4] == found[1], "{found:?}");
        assert!(!found[2].contains("fq 8001") && found[5] == found[2], "{found:?}");
        assert_eq!((&*found[3], &*found[7], &*found[9]), ("0 4194305", "0 ", "0 "), "{found:?}");
        assert!(found[10].contains("v1@"), "{found:?}");
        assert_eq!(found[11], "0 other");
        assert_eq!(found[12], "1 tidegate: docker ps is not supported in this version");
        assert_eq!(found[13], "1 tidegate: the container or process a/b is not supported in this version");
    }

    #[test]
    fn what_a_script_did_not_make_is_taken_to_be_there() {
        let found = said(&[
            "ip netns exec vpn tc qdisc add dev tun0 root fq",
            "ip netns exec vpn tc qdisc show dev tun0",
            "ip netns add other",
            "ip netns exec missing tc qdisc",
            "ip netns exec vpn tc qdisc show dev tun0",
        ]);
        let kept = "qdisc fq 8001: root refcnt 2 limit 10000p";
        assert!(found[0] == "0 " && found[1].contains(kept) && found[4] == found[1], "{found:?}");
        assert!(found[3].starts_with("255 Cannot open"), "{found:?}");
    }

    #[test]
    fn namespaces_have_a_bound() {
        let lines: Vec<String> = (0..=MAX_NAMESPACES).map(|at| format!("ip netns add n{at}")).collect();
        let found = said(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let (last, before) = found.split_last().expect("an answer");
        assert!(before.iter().all(|reply| reply == "0 "), "{before:?}");
        assert!(last.contains("tidegate: more than 256 network namespaces is not supported"), "{last}");
    }

    /// Options before the object, and their values.
    #[test]
    fn the_namespace_of_a_call_is_read_from_its_options() {
        for (line, namespace, runs) in [
            ("tc -s -n a qdisc show", Some("a"), false),
            ("ip -netns a -f inet link", Some("a"), false),
            ("ip -6 -net a netns exec b true", Some("a"), true),
            ("tc qdisc show dev -n", None, false),
            ("ip -f inet netns exec b true", None, true),
            ("iptables -n b", None, false),
            ("tc -n", None, false),
        ] {
            let mut words = line.split(' ').map(str::to_owned);
            let tool = words.next().unwrap_or_default();
            let call = Call { tool, args: words.collect(), stdin: None, cwd: PathBuf::new(), netns: None };
            assert_eq!(call.namespace(), namespace, "{line}");
            assert_eq!(run_in_namespace(&call.tool, &call.args).is_some(), runs, "{line}");
        }
    }
}
