//! How members of documents are written and read where their types alone do not define it.

use alloc::string::String;
use alloc::vec::Vec;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A member that must be there, though it may be `null`.
pub(crate) fn required<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// The length of a step, which divides.
pub(crate) fn step<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match u64::deserialize(from)? {
        0 => Err(D::Error::custom("a step of no length")),
        step => Ok(step),
    }
}

/// Two bounds: JSON has no infinity, no bound is `null`.
pub(crate) mod bounds {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>((low, high): &(f64, f64), to: S) -> Result<S::Ok, S::Error> {
        [low, high].map(|bound| bound.is_finite().then_some(*bound)).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<(f64, f64), D::Error> {
        let (low, high) = <(Option<f64>, Option<f64>)>::deserialize(from)?;
        Ok((low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY)))
    }
}

/// What [`commands`] writes of a machine, for the schema.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[allow(dead_code, reason = "the schema is made of its fields")]
pub(crate) struct MachineLines {
    /// The machine's name.
    machine: String,
    /// Its commands, one a line.
    lines: Vec<String>,
}

/// Commands by machine: `{ "machine": …, "lines": […] }`.
pub(crate) mod commands {
    use super::{Deserialize, Deserializer, Serialize, Serializer, String, Vec};

    #[derive(Deserialize)]
    struct Read {
        machine: String,
        lines: Vec<String>,
    }

    pub(crate) fn serialize<S: Serializer>(of: &[(String, Vec<String>)], to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct MachineLines<'t> {
            machine: &'t str,
            lines: &'t [String],
        }
        to.collect_seq(of.iter().map(|(machine, lines)| MachineLines { machine, lines }))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(String, Vec<String>)>, D::Error> {
        let all = Vec::<Read>::deserialize(from)?;
        Ok(all.into_iter().map(|entry| (entry.machine, entry.lines)).collect())
    }
}
