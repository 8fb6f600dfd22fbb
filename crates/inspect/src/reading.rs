//! What was read: files, the commands in them, and the machine they came to.

use crate::index::Index;
use crate::lost::{Lost, Makers, is_ignored_failure, not_built};
use crate::makers::FilterMakers;
pub use crate::step::{Frame, SourceLocation, Step, Word};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::{Handle, KernelModel, LinuxVersion, Pool, RandomSource, Rate, Seeded, Time};
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{Family, NetfilterRule, NfCommand, NfOp};
use tidegate_policy::{Act, Op};
use tidegate_syntax::tc::refusal_lines;
use tidegate_syntax::units::parse_classid;
use tidegate_syntax::{Env, TcVersion};

/// When a policy is carried out: a machine's clock does not begin at nothing.
pub const CARRIED_OUT_AT: Time = Time(1_000_000_000);

/// The parent of a clsact's filters on arrivals.
pub const CLSACT_INGRESS: Handle = Handle::CLSACT_INGRESS;
/// The parent of its filters on packets that leave.
pub const CLSACT_EGRESS: Handle = Handle::CLSACT_EGRESS;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, as the user gave it.
    pub name: String,
    /// The file's lines.
    pub lines: Vec<String>,
}

/// What is given to a [`PolicyModel`].
pub struct PolicyInput {
    /// The files that were loaded.
    pub sources: Vec<Source>,
    /// The commands, in order.
    pub steps: Vec<Step>,
    /// What they came to, in order.
    pub ops: Vec<Op>,
    /// The devices that were there before, and those that came into being unasked.
    pub devices: Vec<(String, DeviceSpec)>,
    /// The devices that are down after the last command.
    pub down: Vec<String>,
    /// The kernel of the machine.
    pub kernel: KernelModel,
    /// Its tc.
    pub tc: TcVersion,
    /// What the kernel would have written to its log.
    pub kernel_log: Vec<String>,
    /// Scripts are among the files: what they use and do not make must be there before.
    pub scripts: bool,
}

/// What classes are called, by device and number.
pub type ClassNames = BTreeMap<(String, Handle), String>;

/// A policy, understood.
pub struct PolicyModel {
    /// The files that were loaded.
    pub sources: Vec<Source>,
    /// The commands, in order.
    pub steps: Vec<Step>,
    /// What they came to, in order.
    pub ops: Vec<Op>,
    /// What the kernel would have written to its log.
    pub kernel_log: Vec<String>,
    /// The devices that are down after the last command.
    pub down: Vec<String>,
    /// The machine after the last command.
    pub gateway: Gateway,
    /// The qdiscs of all devices.
    pub qdiscs: Vec<QdiscDump>,
    /// The classes of all devices.
    pub classes: Vec<ClassDump>,
    /// The filters of all qdiscs and classes, in the order in which each list is evaluated.
    pub filters: Vec<FilterDump>,
    /// What the policy calls classes, by device and number, where it does: in its own language, or in
    /// comments of a script.
    pub names: ClassNames,
    /// The commands come from a policy in a language of its own, so the user wrote no commands.
    pub compiled: bool,
    /// The ports of bridges, each with its bridge.
    pub ports: Vec<(String, String)>,
    /// Devices that commands moved here from another network namespace.
    pub arrived: BTreeSet<String>,
    /// A later release of Linux than the kernel's: what changes until then is noted.
    pub until: Option<LinuxVersion>,
    /// And one of tc.
    pub tc_until: Option<TcVersion>,
    pub(crate) index: Index,
    makers: FilterMakers,
    pub(crate) lost: Lost,
    /// Leaf classes that no packet comes to, as far as that was decided.
    pub(crate) idle: BTreeSet<(String, Handle)>,
    /// Leaf classes whose packets have all passed a policer.
    pub(crate) policed: BTreeMap<(String, Handle), Policed>,
    /// The longest frames of leaf classes to which only short ones come.
    pub(crate) short: BTreeMap<(String, Handle), u32>,
    devices: Vec<(String, DeviceSpec)>,
    kernel: KernelModel,
    tc: TcVersion,
    scripts: bool,
}

impl PolicyModel {
    /// Takes in what was read.
    pub fn new(given: PolicyInput) -> PolicyModel {
        let PolicyInput { sources, steps, ops, devices, down, kernel, tc, kernel_log, scripts } = given;
        let mut gateway = machine(&devices, kernel, &ops);
        let now = CARRIED_OUT_AT;
        let ids: Vec<_> = gateway.devices().collect();
        let qdiscs: Vec<QdiscDump> = ids.iter().flat_map(|id| gateway.qdiscs(now, *id)).collect();
        let classes: Vec<ClassDump> = ids.iter().flat_map(|id| gateway.classes(now, *id)).collect();
        let parents = qdiscs
            .iter()
            .flat_map(|qdisc| qdisc.filter_lists().map(|parent| (&qdisc.dev, parent)))
            // HFSC lists its root as a class of that name: the filters there are the qdisc's.
            .chain(
                classes
                    .iter()
                    .filter(|class| class.classid.minor() != 0)
                    .map(|class| (&class.dev, class.classid)),
            );
        let mut filters = Vec::new();
        for (dev, parent) in parents {
            if let Some(Ok(dumps)) = gateway.device(dev).map(|id| gateway.own_filters(now, id, parent)) {
                filters.extend(dumps);
            }
        }
        let index = Index::new(&ops, &qdiscs, &classes);
        let makers = FilterMakers::new(&ops, &filters, &index);
        let lost = Lost::of(&steps);
        PolicyModel {
            sources,
            steps,
            ops,
            kernel_log,
            down,
            gateway,
            qdiscs,
            classes,
            filters,
            names: ClassNames::new(),
            compiled: false,
            ports: Vec::new(),
            arrived: BTreeSet::new(),
            until: None,
            tc_until: None,
            index,
            makers,
            lost,
            idle: BTreeSet::new(),
            policed: BTreeMap::new(),
            short: BTreeMap::new(),
            devices,
            kernel,
            tc,
            scripts,
        }
    }

    /// Notes that a script ended before it came to all of its commands: what is missing may be made by the
    /// others.
    pub fn is_cut_short(&mut self) {
        self.lost.anything = true;
    }

    /// Are there scripts among the files?
    pub(crate) fn is_script(&self) -> bool {
        self.scripts
    }

    /// The devices that scripts must find there: no command made them.
    pub(crate) fn there_before(&self) -> impl Iterator<Item = &str> {
        let is_found = |name: &&str| self.scripts && !self.arrived.contains(*name);
        self.devices.iter().map(|(name, _)| name.as_str()).filter(is_found)
    }

    /// Is a device there that no command made?
    pub(crate) fn was_there(&self, name: &str) -> bool {
        self.devices.iter().any(|(own, _)| own == name)
    }

    /// The kernel of the machine.
    pub fn kernel(&self) -> KernelModel {
        self.kernel
    }

    /// The tc of the machine.
    pub(crate) fn tc(&self) -> TcVersion {
        self.tc
    }

    /// How its commands are read.
    pub(crate) fn env(&self) -> Env {
        Env { tc: self.tc, linux: self.kernel.linux, ..Env::default() }
    }

    /// Another machine with this policy, on which packets may be tried.
    pub fn machine(&self) -> Gateway {
        machine(&self.devices, self.kernel, &self.ops)
    }

    /// The machine as it was before the first command.
    pub fn machine_before(&self) -> Gateway {
        machine(&self.devices, self.kernel, &[])
    }

    /// As [`Self::machine_before`], of another release of Linux.
    pub(crate) fn machine_before_of(&self, linux: LinuxVersion) -> Gateway {
        machine(&self.devices, KernelModel { linux, ..self.kernel }, &[])
    }

    /// Whether the commands come from a policy in a language of its own. Then the user wrote no commands.
    pub(crate) fn is_compiled(&self) -> bool {
        self.compiled
    }

    /// The bridge that a device is a port of.
    pub(crate) fn bridge_of(&self, device: &str) -> Option<&str> {
        self.ports.iter().find(|(port, _)| port == device).map(|(_, bridge)| bridge.as_str())
    }

    /// Whether a rule of netfilter was refused, tidegate cannot carry out an action or a filter, or a file of
    /// commands is not there: each may have marked or led packets anywhere.
    pub(crate) fn is_rule_lost(&self) -> bool {
        if self.lost.anything {
            return true;
        }
        let tools = ["nft", "iptables", "ip6tables", "iptables-restore", "ip6tables-restore"];
        let of_netfilter = |step: &Step| !step.may_fail && tools.contains(&step.tool.as_str());
        let acts = |step: &Step| {
            let words = || step.words.iter().map(|word| word.text.as_str());
            step.tool == "tc" && words().any(|word| ["filter", "action", "actions"].contains(&word))
        };
        self.steps.iter().any(|step| {
            let Some(refused) = &step.refused else { return false };
            of_netfilter(step)
                || acts(step) && not_built(step).is_some()
                || refused.contains("Cannot open file")
        })
    }

    /// Whether any rule or action has connections looked up; without one no packet has a state.
    pub(crate) fn looks_connections_up(&self) -> bool {
        let acts = self.filters.iter().flat_map(|dump| match &dump.entry {
            FilterEntry::Filter { actions, .. } => actions.as_slice(),
            _ => &[],
        });
        self.gateway.tracks_connections()
            || acts.into_iter().any(|dump| matches!(dump.action.act, Act::Ct(_)))
    }

    /// A text with the names of classes behind their numbers, where the policy gives them any.
    pub(crate) fn with_class_names(&self, text: &str) -> String {
        if self.names.is_empty() {
            return text.to_owned();
        }
        let of_number = |letter: char| letter.is_ascii_hexdigit() || letter == ':';
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(from) = rest.find(of_number) {
            let end =
                rest[from..].find(|letter| !of_number(letter)).map_or(rest.len(), |length| from + length);
            let apart =
                |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric() && letter != '[');
            let word = &rest[from..end];
            out.push_str(&rest[..end]);
            let alone = apart(rest[..from].chars().next_back()) && apart(rest[end..].chars().next());
            let reported = rest[end..].starts_with(" (");
            if let Some(name) = self.only_name(word).filter(|_| alone && !reported) {
                out.push_str(&format!(" ({})", shown_class_name(name)));
            }
            rest = &rest[end..];
        }
        out + rest
    }

    /// What a class is called on every device that names it.
    fn only_name(&self, word: &str) -> Option<&str> {
        let class = parse_classid(word).filter(|class| word.contains(':') && class.minor() != 0)?;
        let mut names = self.names.iter().filter(|((_, of), _)| *of == class).map(|(_, name)| name.as_str());
        let first = names.next()?;
        names.all(|other| other == first).then_some(first)
    }

    /// A class by its number, with what the policy calls it: `1:20 (calls)`.
    pub fn class_name(&self, dev: &str, class: Handle) -> String {
        match self.names.get(&(dev.to_owned(), class)) {
            Some(name) => format!("{class} ({})", shown_class_name(name)),
            None => class.to_string(),
        }
    }

    /// The command that an operation came from.
    pub fn step_of(&self, op: usize) -> Option<&Step> {
        // Steps that came to nothing have empty ranges; the ends ascend.
        let at = self.steps.partition_point(|step| step.ops.end <= op);
        self.steps.get(at).filter(|step| step.ops.contains(&op))
    }

    /// The place of a command, in words: `line 7`, with the file where there are several.
    pub(crate) fn line(&self, step: &Step) -> Option<String> {
        let place = step.place.as_ref()?;
        Some(match (self.sources.len(), self.sources.get(place.file)) {
            (2.., Some(source)) => format!("{}:{}", source.name, place.line),
            _ => format!("line {}", place.line),
        })
    }

    /// The operation that last gave a class its values.
    pub fn maker_of_class(&self, dev: &str, classid: Handle) -> Option<usize> {
        self.index.maker_of_class(dev, classid)
    }

    /// The operation that last made a qdisc: by its handle, or where the kernel chose that, by its place.
    pub fn maker_of_qdisc(&self, dump: &QdiscDump) -> Option<usize> {
        self.index.maker_of_qdisc(&dump.dev, dump.handle, dump.parent)
    }

    /// Did the kernel choose a qdisc's number? Then no command can count on it.
    pub(crate) fn is_unnamed(&self, dump: &QdiscDump) -> bool {
        let maker = self.maker_of_qdisc(dump).map(|at| &self.ops[at]);
        matches!(maker, Some(Op::Qdisc(op)) if op.handle.is_none())
    }

    /// The operation that made a filter: of several equal ones the last; where there are as many filters,
    /// each has its own.
    pub fn maker_of_filter(&self, dump: &FilterDump) -> Option<usize> {
        self.makers.of(dump, &self.index)
    }

    /// The operation that put a rule into a chain of a table; of several equal ones, the one after `before`
    /// others.
    pub fn maker_of_rule(
        &self,
        (family, table, chain): (Family, &str, &str),
        rule: &NetfilterRule,
        before: usize,
    ) -> Option<usize> {
        let makes = |op: &Op| {
            let Op::Netfilter(NfOp { family: of, table: name, command }) = op else { return false };
            let here = match command {
                NfCommand::Append(into, _) | NfCommand::Insert(into, ..) | NfCommand::ReplaceAt(into, ..) => {
                    into == chain
                }
                // nft names the chain's rule beside which it goes.
                _ => true,
            };
            *of == family && name == table && here && command.rule() == Some(rule)
        };
        let makers = self.ops.iter().enumerate().filter(|(_, op)| makes(op)).map(|(at, _)| at);
        let makers: Vec<usize> = makers.collect();
        makers.get(before).or(makers.last()).copied()
    }

    /// The operations that gave the qdiscs, classes and filters which are there in the end their values.
    pub fn lasting(&self) -> BTreeSet<usize> {
        let qdiscs = self.qdiscs.iter().filter_map(|qdisc| self.maker_of_qdisc(qdisc));
        let classes = self.classes.iter().filter_map(|class| self.maker_of_class(&class.dev, class.classid));
        let filters = self.filters.iter().filter_map(|filter| self.maker_of_filter(filter));
        qdiscs.chain(classes).chain(filters).collect()
    }
}

/// What policers let through to a class, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policed {
    /// In the long run.
    pub(crate) rate: Rate,
    /// Bytes at once.
    pub(crate) burst: u64,
}

/// A machine with these devices on which these operations were carried out.
fn machine(devices: &[(String, DeviceSpec)], kernel: KernelModel, ops: &[Op]) -> Gateway {
    let mut gateway = Gateway::new();
    gateway.set_kernel(kernel);
    for (name, spec) in devices {
        gateway.add_device(name, *spec);
    }
    let (mut pool, mut seeded) = (Pool::new(0), Seeded::new(1));
    let draws: &mut dyn RandomSource = &mut seeded;
    for op in ops {
        // Each was carried out once, so it will be again.
        let _ =
            gateway.apply(GatewayContext { now: CARRIED_OUT_AT, pool: &mut pool, random: &mut *draws }, op);
    }
    gateway
}

/// The most characters of a class's name that are printed beside its number. No name of a short policy's own
/// is longer.
const LONGEST_NAME: usize = 48;

/// What a policy calls a class, as it is printed beside the number: the beginning of a long name, with an
/// ellipsis. Documents have it whole.
///
/// ```
/// use tidegate_inspect::shown_class_name;
///
/// assert_eq!(shown_class_name("calls"), "calls");
/// let long = "calls, games, and all the others that must not wait for anybody";
/// assert_eq!(shown_class_name(long), "calls, games, and all the others that must not…");
/// ```
pub fn shown_class_name(name: &str) -> Cow<'_, str> {
    if name.chars().count() <= LONGEST_NAME {
        return Cow::Borrowed(name);
    }
    let kept: String = name.chars().take(LONGEST_NAME - 1).collect();
    Cow::Owned(format!("{}…", kept.trim_end()))
}

/// Commands whose failure or its message is ignored, a sentence each with its line and the reason, at most
/// [`MOST_IGNORED`].
pub fn ignored_failures(reading: &PolicyModel) -> Vec<String> {
    let makers = Makers::of(&reading.steps);
    let found: Vec<&Step> = reading.steps.iter().filter(|step| is_ignored_failure(step, &makers)).collect();
    let sentence = |step: &&Step| {
        let place = step.place.as_ref().and_then(|at| Some((reading.sources.get(at.file)?, at.line)));
        let line = place.map(|(source, line)| format!("{}:{line}: ", source.name)).unwrap_or_default();
        let reason = refusal_lines(step.refused.as_deref().unwrap_or_default()).next().unwrap_or_default();
        format!(
            "{line}`{}` fails, which the script hides or ignores; what it should do is missing: {reason}",
            step.text()
        )
    };
    let mut all: Vec<String> = found.iter().take(MOST_IGNORED).map(sentence).collect();
    if let Some(more) = found.len().checked_sub(MOST_IGNORED).filter(|more| *more > 0) {
        all.push(format!("{more} more such commands; `tidegate check` lists all"));
    }
    all
}

/// The most commands that are listed there.
const MOST_IGNORED: usize = 8;
