#![forbid(unsafe_code)]
//! Packets of the past through the engine: [`recorded`] runs of a real kernel, compared with it byte by byte,
//! and [`captured`] packets of any network, through policies that were not there.
//!
//! Pure: no files, clock, processes or output.
//!
//! ```
//! use tidegate_replay::recorded::{PlainCommands, Recording, Texts, recorded_device, replay};
//! use tidegate_shims::Machine;
//!
//! let schedule = "time_ns,id,size,src,dst,proto,sport,dport,dsfield\n\
//!                 0,1,1000,10.9.0.3,10.0.0.5,udp,53,3465,0\n\
//!                 0,2,1000,10.9.0.3,10.0.0.5,udp,53,3465,0\n\
//!                 0,3,1000,10.9.0.3,10.0.0.5,udp,53,3465,0\n";
//! let texts = Texts { link: "8000000 0 1500 10", schedule, random: None, has_frames: false, linux: None };
//! let recording = Recording::parse(&texts, 1).unwrap();
//! let machine = Machine::recorded(recorded_device(&recording.link), recording.link.forward);
//! let mut commands = PlainCommands::new("tc qdisc add dev link0 root pfifo limit 1");
//! let done = replay(&recording, machine, &mut commands).unwrap();
//! // One packet is sent at once, one waits its millisecond, and there is no room for the third.
//! assert_eq!(done.egress, "time_ns,id,len,dsfield\n0,1,1000,0\n1000000,2,1000,0\n");
//! assert_eq!(done.summary(), "3 packets arrived, 2 sent, 1 dropped");
//! ```

pub mod annotated;
pub mod captured;
mod reader;
pub mod recorded;

pub use reader::{CaptureReader, ReadCaptureError};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
