//! From the command line to the settings of a trial.

use super::options::Options;
use super::rates::TrialLink;
use tidegate_capture::DEFAULT_TIMEOUT;
use tidegate_trial::{TrialCommand, TrialSettings};

impl Options {
    /// The settings of the trial itself.
    pub(crate) fn settings(&self, link: TrialLink) -> TrialSettings {
        let TrialLink { up, down, line } = link;
        let (buffer, down_buffer) = TrialSettings::usual_buffers(line.as_ref());
        let mut settings = TrialSettings {
            script: self.script.display().to_string(),
            again: String::new(),
            args: self.args.clone(),
            up,
            down,
            line,
            rtt: self.rtt,
            buffer: self.buffer.unwrap_or(buffer),
            down_buffer: self.down_buffer.or(down_buffer),
            duration: self.duration,
            cable: self.cable,
            ring: self.ring,
            bql: self.bql,
            load: self.load.clone(),
            flows: self.flows,
            probes: self.probes.clone(),
            ipv6: self.ipv6,
            seed: self.seed,
            show: self.show.clone(),
        };
        let flags = [("private", self.sandbox.private), ("keep-going", self.keep_going), ("log", self.log)];
        let command = TrialCommand {
            policy: &self.script,
            also: &self.also,
            dev: self.dev.as_deref(),
            over: self.over.as_ref(),
            lan: self.lan.as_deref(),
            kernel: self.kernel.into(),
            tc: self.kernel.tc,
            timeout: Some(self.sandbox.timeout).filter(|time| *time != DEFAULT_TIMEOUT),
            script: &self.sandbox.choices(),
            outputs: &self.output.iter().map(|file| file.path.as_path()).collect::<Vec<_>>(),
            flags: &flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect::<Vec<_>>(),
        };
        settings.again = command.words(&settings);
        settings
    }
}
