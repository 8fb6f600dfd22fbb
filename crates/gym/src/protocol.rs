//! The line protocol of controllers in other languages: a line of JSON for what happened, and one for the
//! answer. `docs/gym.md#controllers-in-any-language` describes it.

use serde_json::{Value, json};
use tidegate_control::{
    ControlEvent, ControlReason, OneWayDelays, PerDirection, RateDecision, RateDirection, RateLimits,
    ShaperCounters,
};
use tidegate_packet::{Nanos, Time};

/// The version of the protocol: it changes when a member changes its meaning or goes away.
pub const CONTROLLER_FORM: u64 = 1;
/// The longest answer, bytes.
pub const MAX_ANSWER: usize = 4096;
/// Between these rates an answer may choose, bit/s.
pub const ANSWER_RATES: [u64; 2] = [8_000, 1_000_000_000_000];
/// The most replies, losses and round trips of one kind in a line; further ones are counted.
const MAX_LISTED: usize = 2000;

/// What happened since the last line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramCall {
    replies: Vec<Value>,
    lost: Vec<Value>,
    tcp: Vec<Value>,
    left_out: u64,
    acknowledged: u64,
    sent_again: [u64; 2],
    counters: Option<PerDirection<ShaperCounters>>,
}

impl ProgramCall {
    /// The first line: the limits that all controllers have.
    #[must_use]
    pub fn start(limits: &RateLimits) -> String {
        let both = |rates: PerDirection<u64>| json!({ "up": rates.up, "down": rates.down });
        let line = json!({
            "tidegate_controller": CONTROLLER_FORM,
            "call": "start",
            "at": 0.0,
            "least": both(limits.least),
            "base": both(limits.base),
            "most": both(limits.most),
        });
        line.to_string() + "\n"
    }

    /// Takes an event in; `began`: when the run did. True: the program is to be called now.
    pub fn take(&mut self, event: &ControlEvent, began: Time) -> bool {
        let seconds = |at: Time| at.since(began).as_secs_f64();
        let list = |list: &mut Vec<Value>, left_out: &mut u64, value: Value| match list.len() {
            MAX_LISTED.. => *left_out += 1,
            _ => list.push(value),
        };
        match event {
            ControlEvent::ProbeReply(reply) => {
                let mut value = json!({
                    "target": reply.reflector,
                    "sent": seconds(reply.sent),
                    "rtt_ms": ms(reply.rtt),
                });
                if let Some(OneWayDelays { up, down }) = reply.one_way {
                    (value["up_ms"], value["down_ms"]) = (json!(up as f64 / 1e6), json!(down as f64 / 1e6));
                }
                list(&mut self.replies, &mut self.left_out, value);
            }
            ControlEvent::ProbeLost { reflector, sent } => {
                let value = json!({ "target": reflector, "sent": seconds(*sent) });
                list(&mut self.lost, &mut self.left_out, value);
            }
            ControlEvent::TcpRoundTrip { flow, data, rtt } => {
                let value = json!({ "connection": flow, "data": word(*data), "rtt_ms": ms(*rtt) });
                list(&mut self.tcp, &mut self.left_out, value);
            }
            ControlEvent::Acknowledged(bytes) => self.acknowledged += bytes,
            ControlEvent::Retransmission(direction) => {
                self.sent_again[usize::from(*direction == RateDirection::Down)] += 1;
            }
            ControlEvent::Counters(counters) => self.counters = Some(*counters),
            ControlEvent::Start | ControlEvent::Capacity(_) | ControlEvent::Timer => {}
        }
        matches!(event, ControlEvent::Counters(_) | ControlEvent::Timer)
    }

    /// The line for what was taken in, which is forgotten; `rates`: those in force.
    pub fn line(&mut self, at: Nanos, rates: PerDirection<Option<u64>>) -> String {
        let call = std::mem::take(self);
        let mut line = json!({
            "call": "events",
            "at": at.as_secs_f64(),
            "rate": { "up": rates.up, "down": rates.down },
            "replies": call.replies,
            "lost": call.lost,
            "tcp": call.tcp,
            "acknowledged": call.acknowledged,
            "sent_again": { "up": call.sent_again[0], "down": call.sent_again[1] },
            "left_out": call.left_out,
        });
        if let Some(counters) = call.counters {
            let of = |one: ShaperCounters| {
                json!({
                    "arrived": one.arrived,
                    "sent": one.sent,
                    "dropped": one.dropped,
                    "backlog": one.backlog,
                })
            };
            line["counters"] = json!({ "up": of(counters.up), "down": of(counters.down) });
        }
        line.to_string() + "\n"
    }
}

fn ms(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

fn word(direction: RateDirection) -> &'static str {
    match direction {
        RateDirection::Up => "up",
        RateDirection::Down => "down",
    }
}

/// What a program answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramAnswer {
    /// Rates to set.
    pub decisions: Vec<RateDecision>,
    /// When it wants to be called at the latest, since the run began.
    pub next: Option<Nanos>,
}

impl ProgramAnswer {
    /// Reads an answer.
    ///
    /// # Errors
    /// What is wrong with it, and what may stand there.
    pub fn read(line: &str) -> Result<ProgramAnswer, String> {
        let value: Value = serde_json::from_str(line)
            .map_err(|error| format!("it is no JSON ({error}); answer {{}} to change nothing"))?;
        let Value::Object(members) = value else {
            return Err("it is no object; answer {} to change nothing".into());
        };
        let (mut rates, mut reason, mut delay, mut next) = ([None; 2], ControlReason::Program, None, None);
        for (name, value) in &members {
            match name.as_str() {
                "up" => rates[0] = Some(rate(name, value)?),
                "down" => rates[1] = Some(rate(name, value)?),
                "reason" => reason = reason_of(value)?,
                "delay_ms" => delay = Some(time(name, value, 1e6)?),
                "next" => next = Some(time(name, value, 1e9)?),
                _ => {
                    return Err(format!(
                        "there is no member {name:?}; there are up, down, reason, delay_ms and next"
                    ));
                }
            }
        }
        let decisions = RateDirection::BOTH.into_iter().zip(rates).filter_map(|(direction, rate)| {
            Some(RateDecision { direction, bits_per_second: rate?, reason, delay })
        });
        Ok(ProgramAnswer { decisions: decisions.collect(), next })
    }
}

fn rate(name: &str, value: &Value) -> Result<u64, String> {
    let [least, most] = ANSWER_RATES;
    let found = value.as_f64().filter(|rate| *rate >= least as f64 && *rate <= most as f64);
    found
        .map(|rate| rate as u64)
        .ok_or_else(|| format!("{name} is no rate in bit/s: a number from {least} to {most}"))
}

fn time(name: &str, value: &Value, unit: f64) -> Result<Nanos, String> {
    let found = value.as_f64().filter(|time| *time >= 0.0 && *time <= 1e6);
    found
        .map(|time| Nanos((time * unit) as u64))
        .ok_or_else(|| format!("{name} is no number from 0 to 1000000"))
}

fn reason_of(value: &Value) -> Result<ControlReason, String> {
    let found = ControlReason::ALL.into_iter().find(|reason| value.as_str() == Some(reason.id()));
    found.ok_or_else(|| {
        let ids: Vec<&str> = ControlReason::ALL.iter().map(|reason| reason.id()).collect();
        format!("reason is none of {}", ids.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_control::ProbeReply;

    #[test]
    fn a_line_has_what_happened_since_the_last_one() {
        let began = Time(1_000_000_000);
        let mut call = ProgramCall::default();
        let reply = ProbeReply {
            reflector: 3,
            sent: Time(1_500_000_000),
            rtt: Nanos::millis(25),
            one_way: Some(OneWayDelays { up: -7_000_000, down: 32_000_000 }),
        };
        let counters = ShaperCounters { arrived: 9, sent: 5, dropped: 1, backlog: 3 };
        assert!(!call.take(&ControlEvent::ProbeReply(reply), began));
        assert!(!call.take(&ControlEvent::Retransmission(RateDirection::Down), began));
        assert!(!call.take(&ControlEvent::Acknowledged(3000), began));
        let counters = PerDirection { up: counters, down: ShaperCounters::default() };
        assert!(call.take(&ControlEvent::Counters(counters), began));
        let line = call.line(Nanos::millis(550), PerDirection { up: Some(1000), down: None });
        let line: Value = serde_json::from_str(&line).expect("JSON");
        let reply = json!({ "target": 3, "sent": 0.5, "rtt_ms": 25.0, "up_ms": -7.0, "down_ms": 32.0 });
        assert_eq!((&line["replies"], &line["at"]), (&json!([reply]), &json!(0.55)));
        assert_eq!(line["rate"], json!({ "up": 1000, "down": null }));
        assert_eq!((&line["sent_again"]["down"], &line["acknowledged"]), (&json!(1), &json!(3000)));
        assert_eq!(line["counters"]["up"]["backlog"], json!(3));
        // All of it is forgotten.
        assert_eq!(call, ProgramCall::default());
        for _ in 0..MAX_LISTED + 5 {
            call.take(&ControlEvent::ProbeLost { reflector: 1, sent: began }, began);
        }
        assert_eq!((call.lost.len(), call.left_out), (MAX_LISTED, 5));
    }

    #[test]
    fn an_answer_is_read_and_nonsense_is_refused_with_what_may_stand_there() {
        let answer = ProgramAnswer::read(r#"{"up":1e6,"reason":"load-high","delay_ms":3,"next":0.5}"#);
        let expected = RateDecision {
            direction: RateDirection::Up,
            bits_per_second: 1_000_000,
            reason: ControlReason::LoadHigh,
            delay: Some(Nanos::millis(3)),
        };
        let next = Some(Nanos::millis(500));
        assert_eq!(answer, Ok(ProgramAnswer { decisions: vec![expected], next }));
        assert_eq!(ProgramAnswer::read("{}"), Ok(ProgramAnswer::default()));
        for (line, expected) in [
            ("up 3", "it is no JSON"),
            ("[]", "it is no object"),
            (r#"{"up":0}"#, "up is no rate in bit/s: a number from 8000"),
            (r#"{"down":"9"}"#, "down is no rate"),
            (r#"{"next":-1}"#, "next is no number from 0"),
            (r#"{"reason":"mood"}"#, "reason is none of begin, fixed"),
            (r#"{"rate":3}"#, "there is no member \"rate\"; there are up"),
        ] {
            let why = ProgramAnswer::read(line).expect_err(line);
            assert!(why.starts_with(expected), "{line}: {why}");
        }
    }
}
