//! Which cases of a design are run: `up > 10mbit and rtt >= 100ms`.

use crate::axis::{BadAxis, SweepAxis, named_axis, number_of};
use std::cmp::Ordering;
use tidegate_scenario::settings::Setting;

/// Comparisons that hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepCondition(Vec<Comparison>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    left: String,
    sign: &'static str,
    right: String,
}

/// The signs, longer ones first.
const SIGNS: [&str; 7] = ["<=", ">=", "!=", "==", "<", ">", "="];

impl SweepCondition {
    /// Reads comparisons with `and` between them.
    ///
    /// # Errors
    /// What is no comparison, names none of the axes, or compares with what its values are not.
    pub fn parse(text: &str, axes: &[SweepAxis]) -> Result<SweepCondition, BadAxis> {
        let paths: Vec<&str> = axes.iter().map(|axis| axis.path.as_str()).collect();
        let unit = |path: &str| axes.iter().find(|axis| axis.path == path).and_then(SweepAxis::unit);
        let comparison = |part: &str| {
            let found = SIGNS.iter().filter_map(|sign| Some((part.find(sign)?, *sign)));
            // Of signs that begin at one place the longer.
            let (at, sign) =
                found.min_by_key(|(at, sign)| (*at, usize::MAX - sign.len())).ok_or_else(|| {
                    BadAxis(format!(
                        "`{part}` compares nothing: write rtt > 100ms, or up = 5mbit and cc = bbr"
                    ))
                })?;
            let (left, right) = (part[..at].trim(), part[at + sign.len()..].trim());
            let path = named_axis(left, paths.iter().copied())?
                .ok_or_else(|| BadAxis(format!("`{left}` is not varied: there are {}", paths.join(", "))))?;
            if right.is_empty() || right.contains([' ', '<', '>', '=', '!']) {
                return Err(BadAxis(format!(
                    "`{part}` compares with no value: write rtt >= 100ms, and `and` between comparisons (`or` is \
                    a condition of its own)"
                )));
            }
            let other = named_axis(right, paths.iter().copied())?;
            let theirs = other.map_or_else(|| number_of(right).map(|(_, unit)| unit), unit);
            if let (Some(ours), theirs) = (unit(path), theirs)
                && theirs != Some(ours)
            {
                let unit = if ours.is_empty() { "a number" } else { ours };
                return Err(BadAxis(format!(
                    "`{part}`: the values of {path} are in {unit}, and {right} is not"
                )));
            }
            let right = other.unwrap_or(right).to_owned();
            Ok(Comparison { left: path.to_owned(), sign, right })
        };
        text.split(" and ").map(|part| comparison(part.trim())).collect::<Result<_, _>>().map(SweepCondition)
    }

    /// Whether it holds for a case.
    #[must_use]
    pub fn holds(&self, settings: &[Setting]) -> bool {
        let value = |name: &str| settings.iter().find(|one| one.path == name).map(|one| one.value.as_str());
        self.0.iter().all(|one| {
            let (Some(left), right) = (value(&one.left), value(&one.right).unwrap_or(&one.right)) else {
                return false;
            };
            let order = match (number_of(left), number_of(right)) {
                (Some((left, _)), Some((right, _))) => left.partial_cmp(&right),
                _ if left == right => Some(Ordering::Equal),
                _ => None,
            };
            match one.sign {
                "<" => order == Some(Ordering::Less),
                ">" => order == Some(Ordering::Greater),
                "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                ">=" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                "!=" => order != Some(Ordering::Equal),
                _ => order == Some(Ordering::Equal),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_quantities_and_words() {
        let case: Vec<Setting> = [("home.up", "5mbit"), ("home.rtt", "0.1s"), ("hosts.a.tcp", "bbr")]
            .map(|(path, value)| Setting { path: path.into(), value: value.into() })
            .into();
        let axes: Vec<SweepAxis> = case
            .iter()
            .map(|one| SweepAxis::of(&one.path, &[&one.value]).unwrap_or_else(|wrong| panic!("{wrong}")))
            .collect();
        let holds = |text: &str| SweepCondition::parse(text, &axes).map(|condition| condition.holds(&case));
        for (text, expected) in [
            ("up > 5000kbit", false),
            ("up >= 5000kbit", true),
            ("home.rtt <= 100ms and tcp = bbr", true),
            ("tcp != cubic", true),
            ("tcp > cubic", false),
            ("rtt<1s and up=4mbit", false),
        ] {
            assert_eq!(holds(text), Ok(expected), "{text}");
        }
        let wrong = |text: &str, why: &str| holds(text).is_err_and(|wrong| wrong.0.contains(why));
        assert!(wrong("up > 5ms", "the values of home.up are in bit/s, and 5ms is not"));
        assert!(wrong("up = 5", "are in bit/s") && wrong("rtt < up", "are in s"));
        assert!(
            wrong("rtt => 20ms", "compares with no value") && wrong("rtt = 10 ms", "compares with no value")
        );
        assert!(wrong("rtt = 10ms or rtt = 20ms", "`or` is a condition of its own"));
        assert!(holds("rtt").is_err_and(|wrong| wrong.0.contains("compares nothing")));
        assert!(holds("down > 1").is_err_and(|wrong| wrong.0.contains("is not varied: there are home.up")));
    }
}
