//! The words behind the name of a kind become its parameters.

use super::kind::row::unparsable;
use super::kind::syntax;
use super::options::Reader;
use super::words::Words;
use crate::{Env, Refusal, nearest};
use tidegate_policy::spec::{KindSpec, UnsupportedKind};
use tidegate_policy::{ClassParams, Kind, QdiscParams};

/// Reads the options of a qdisc of this kind. `None`: tc sends no parameters. Warnings of tc, which then
/// continues, are added to `stderr`.
pub(super) fn qdisc(
    name: &str,
    dev: &str,
    env: &Env,
    words: &mut Words<'_>,
    stderr: &mut String,
) -> Result<Option<QdiscParams>, Refusal> {
    if let Some(refused) = UnsupportedKind::find(name) {
        return Err(not_built(refused, env.has_several_queues(dev), words.last()));
    }
    let Some(kind) = Kind::named(name) else { return unparsable(name, words).map(|()| None) };
    let reader = Reader { spec: kind.spec(), dev, env, class: false };
    syntax(kind).qdisc(&reader, words, stderr)
}

/// Reads the options of a class of this kind.
pub(super) fn class(name: &str, dev: &str, env: &Env, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
    let place = words.last();
    if let Some(gone) = UnsupportedKind::find(name).filter(|kind| matches!(kind.name, "cbq" | "dsmark")) {
        let UnsupportedKind { name, why, instead, .. } = gone;
        return Err(
            later("class", name, place).remedy(format!("{name} is not built: {why}. Instead, {instead}."))
        );
    }
    let Some(spec) = KindSpec::find(name).filter(|spec| spec.class.is_some()) else {
        let kinds = KindSpec::all().filter(|spec| spec.class.is_some()).map(|spec| spec.name);
        let near = nearest(name, kinds.chain(["classid", "parent", "root", "dev", "estimator"]));
        let remedy = match near.filter(|_| Kind::named(name).is_none()) {
            Some(near) => format!("There is no kind \"{name}\"; did you mean {near}?"),
            None => {
                "Classes are made by hand for htb, hfsc, drr and qfq; those of ets can be changed.".to_owned()
            }
        };
        return Err(Refusal::new(1, format!("Error: Qdisc \"{name}\" is classless."))
            .at(place)
            .remedy(remedy));
    };
    let reader = Reader { spec, dev, env, class: true };
    syntax(spec.kind).class(&reader, words)
}

/// The refusal of a kind that is not built: in the kernel's words where it would refuse too, which is where
/// the device has one transmit queue.
fn not_built(refused: &UnsupportedKind, several_queues: bool, place: usize) -> Refusal {
    let UnsupportedKind { name, why, instead, .. } = refused;
    let refusal = match refused.reply.filter(|_| !several_queues) {
        Some(answer) => Refusal::new(2, answer),
        None => Refusal::new(1, format!("tidegate: qdisc \"{name}\" is not supported")),
    };
    refusal.at(place).remedy(format!("{name} is not built: {why}. Instead, {instead}."))
}

/// The refusal of what tc knows and this version does not.
pub(super) fn later(object: &str, name: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("tidegate: {object} \"{name}\" is not supported in this version"))
        .at(place)
        .remedy("tidegate does not model this yet; the command was not carried out.")
}
