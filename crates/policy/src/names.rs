//! The devices that an operation names.

use crate::netfilter::{Condition, NetfilterRule, NfCommand};
use crate::{Act, Action, ActionsOp, ChainOp, FilterOp, LinkDriver, LinkOp, Op};
use alloc::string::String;

impl Op {
    /// The device whose queues or settings it is about; `None`: it makes one, or is about something else.
    pub fn device(&self) -> Option<&str> {
        match self {
            Op::Qdisc(op) => Some(&op.dev),
            Op::Class(op) => Some(&op.dev),
            Op::Filter(FilterOp { dev, block: 0, .. }) | Op::Chain(ChainOp { dev, block: 0, .. }) => {
                Some(dev)
            }
            Op::Filter(_) | Op::Chain(_) => None,
            Op::TxQueueLen { dev, .. } | Op::Mtu { dev, .. } | Op::Ring { dev, .. } => Some(dev),
            Op::Link(
                LinkOp::Delete { name }
                | LinkOp::Rename { name, .. }
                | LinkOp::TxQueues { name, .. }
                | LinkOp::Address { name, .. },
            ) => Some(name),
            Op::Link(LinkOp::Add { .. }) | Op::Actions(_) | Op::Netfilter(_) => None,
        }
    }

    /// Shows every name of a device in it, to be changed: to bind a policy to another device.
    pub fn each_device(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Op::Qdisc(op) => change(&mut op.dev),
            Op::Class(op) => change(&mut op.dev),
            Op::Filter(op) => of_filter(op, change),
            Op::Chain(op) if op.block == 0 => change(&mut op.dev),
            Op::Chain(_) => {}
            Op::Actions(ActionsOp::Set(_, actions)) => of_actions(actions, change),
            Op::Actions(_) => {}
            Op::Netfilter(op) => {
                if let Some(rule) = of_command(&mut op.command) {
                    rule.matches.iter_mut().for_each(|one| of_condition(&mut one.what, change));
                }
            }
            Op::Link(op) => of_link(op, change),
            Op::TxQueueLen { dev, .. } | Op::Mtu { dev, .. } | Op::Ring { dev, .. } => change(dev),
        }
    }
}

fn of_filter(op: &mut FilterOp, change: &mut dyn FnMut(&mut String)) {
    if op.block == 0 {
        change(&mut op.dev);
    }
    if let Some(indev) = op.params.as_mut().and_then(|params| params.indev_mut()) {
        change(&mut indev.name);
    }
    of_actions(&mut op.actions, change);
}

fn of_actions(actions: &mut [Action], change: &mut dyn FnMut(&mut String)) {
    for action in actions {
        if let Act::Mirred(mirred) = &mut action.act {
            change(&mut mirred.to);
        }
    }
}

fn of_command(command: &mut NfCommand) -> Option<&mut NetfilterRule> {
    match command {
        NfCommand::Append(_, rule)
        | NfCommand::Insert(_, _, rule)
        | NfCommand::ReplaceAt(_, _, rule)
        | NfCommand::Delete(_, rule)
        | NfCommand::Beside { rule, .. }
        | NfCommand::ReplaceHandle(_, _, rule) => Some(rule),
        _ => None,
    }
}

fn of_condition(condition: &mut Condition, change: &mut dyn FnMut(&mut String)) {
    match condition {
        Condition::In(name) | Condition::Out(name) => change(name),
        Condition::Any(all) => all.iter_mut().for_each(|one| of_condition(one, change)),
        _ => {}
    }
}

fn of_link(op: &mut LinkOp, change: &mut dyn FnMut(&mut String)) {
    match op {
        LinkOp::Add { name, kind } => {
            change(name);
            match kind {
                LinkDriver::Veth { peer } => change(peer),
                LinkDriver::Vlan { lower, .. } => change(lower),
                _ => {}
            }
        }
        LinkOp::Delete { name } | LinkOp::TxQueues { name, .. } | LinkOp::Address { name, .. } => {
            change(name)
        }
        LinkOp::Rename { name, to } => {
            change(name);
            change(to);
        }
    }
}
