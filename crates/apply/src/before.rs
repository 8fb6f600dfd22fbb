//! What was installed on devices before a policy was applied, as it is kept in a state file.

use crate::record::{self, Raw};
use serde_json::{Value, json};
use tidegate_daemon::{ErrorContext, Result, ensure};
use tidegate_netlink::RawDump;

/// What was installed on the devices, and what else would be changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// What each device's kernel reported; `None`: it was not there.
    pub(crate) devices: Vec<(String, Option<RawDump>)>,
    /// How long packets and queues of links were: maximal packet, transmit queue.
    pub(crate) links: Vec<(String, u32, u32)>,
    /// Messages that make our table of rules as it was, if there was one.
    pub(crate) rules: Vec<Raw>,
    /// The table's name.
    pub(crate) table: String,
}

impl Before {
    /// For a state file.
    pub(crate) fn kept(&self) -> Value {
        let devices = self
            .devices
            .iter()
            .map(|(dev, dump)| json!({"dev": dev, "dump": dump.as_ref().map(record::kept)}));
        let links =
            self.links.iter().map(|(dev, mtu, queue)| json!({"dev": dev, "mtu": mtu, "txqueuelen": queue}));
        json!({
            "devices": devices.collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
            "rules": record::kept_raw(&self.rules),
            "table": self.table,
        })
    }

    /// Out of a state file.
    ///
    /// # Errors
    /// It was not kept by us.
    pub(crate) fn of(kept: &Value) -> Result<Before> {
        let missing =
            |what: &'static str| move || format!("`{what}` is missing or is not what tidegate wrote");
        let list = |what: &'static str| kept[what].as_array().with_context(missing(what));
        let name = |value: &Value| Some(value["dev"].as_str()?.to_owned());
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let mut devices = Vec::new();
        for one in list("devices")? {
            let dump = if one["dump"].is_null() { None } else { Some(record::dump_from_json(&one["dump"])?) };
            devices.push((name(one).with_context(missing("devices"))?, dump));
        }
        let link = |one: &Value| Some((name(one)?, number(&one["mtu"])?, number(&one["txqueuelen"])?));
        let links: Option<Vec<_>> = list("links")?.iter().map(link).collect();
        let rules = record::raw(&kept["rules"]);
        ensure!(rules.len() == list("rules")?.len(), State, "{}", missing("rules")());
        Ok(Before {
            devices,
            links: links.with_context(missing("links"))?,
            rules,
            table: kept["table"].as_str().with_context(missing("table"))?.to_owned(),
        })
    }
}
