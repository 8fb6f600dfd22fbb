//! A session with a far end whose results are kept when it breaks off.

use super::far::FarOptions;
use std::io::IsTerminal;
use tidegate_field::{Error, Far};
use tidegate_measure::stream::{Course, Exchange, Journey, Outcome, Path, Stream};
use tidegate_os::interrupt;

/// A far end. Once an exchange was cut, or the far end is gone after one that was carried out, those that follow send nothing and say why:
/// whoever estimates then ends by himself with what he has.
pub(crate) struct Kept {
    far: Far,
    cut: Option<String>,
    is_begun: bool,
}

impl Kept {
    /// Begins a session; Ctrl-C ends what goes on.
    ///
    /// # Errors
    /// Nobody is there, or he does not want us, or there is no token where one was said to be.
    pub(crate) fn connect(options: &FarOptions, host: &str) -> anyhow::Result<Kept> {
        let mut far = Far::connect(&options.target(host)?)?;
        far.stop_on(interrupt::notice());
        Ok(Kept { far, cut: None, is_begun: false })
    }

    /// Are its packets those of IPv6?
    pub(crate) fn is_ipv6(&self) -> bool {
        self.far.address().is_ipv6()
    }

    /// Why it broke off, if it did.
    pub(crate) fn cut(&self) -> Option<String> {
        self.cut.clone()
    }

    /// What this machine did to the measurement.
    pub(crate) fn doubts(&self) -> Vec<String> {
        self.far.doubts()
    }
}

impl Path for Kept {
    type Error = Error;

    fn carry_out(&mut self, exchange: &Exchange) -> Result<Outcome, Error> {
        if self.cut.is_some() {
            return Ok(unsent(exchange, self.cut.clone()));
        }
        match self.far.carry_out(exchange) {
            Ok(outcome) => {
                self.is_begun = true;
                self.cut.clone_from(&outcome.cut);
                Ok(outcome)
            }
            Err(error) if self.is_begun => {
                self.cut = Some(error.to_string());
                Ok(unsent(exchange, self.cut.clone()))
            }
            Err(error) => Err(error),
        }
    }
}

/// An exchange of which nothing was sent.
fn unsent(exchange: &Exchange, cut: Option<String>) -> Outcome {
    let course = |stream: &Stream| Course {
        stream: stream.clone(),
        journeys: vec![Journey::default(); usize::try_from(stream.packets()).unwrap_or(0)],
    };
    Outcome { up: course(&exchange.up), down: course(&exchange.down), cut }
}

/// A line on the terminal that says how far it is; nothing in a pipe.
pub(crate) fn tell(quiet: bool, words: &str) {
    if !quiet && crate::output::stderr().is_terminal() {
        crate::output::draw(&format!("\r\x1b[K{}", tidegate_text::line(words)));
    }
}
