//! A script run on a machine of its own, once for each list of arguments, with its calls and the machine that
//! they leave.

use crate::format::{FormatError, InputFormat, MAX_POLICY, sniff};
use crate::machines::Chosen;
use crate::test_bed::TestBed;
use crate::traced::Traced;
use crate::{LoadError, LoadedPolicy, ReadOptions, SandboxOptions, distributions, inside};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tidegate_capture::{CaptureOptions, Output, PrintFn, ScriptRun, run_in_turn, to_streams};
use tidegate_packet::{KernelModel, Pool, Seeded, Time};
use tidegate_shims::Machine;
use tidegate_syntax::TcVersion;
use tidegate_sys::input_file;

/// When the script runs: a machine's clock does not begin at nothing.
const STARTED: Time = Time(1_000_000_000);

/// How a script is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The arguments of each run; a list of none for a run without.
    pub turns: Vec<Vec<String>>,
    /// Devices that are there beside those the script names.
    pub devices: Vec<String>,
    /// The sandbox.
    pub sandbox: SandboxOptions,
    /// The kernel of the machine.
    pub kernel: KernelModel,
    /// Its tc.
    pub tc: TcVersion,
    /// What happens to the script's output,
    pub output: Output,
    /// and what prints it, where it is passed on.
    pub print: PrintFn,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            turns: vec![Vec::new()],
            devices: Vec::new(),
            sandbox: SandboxOptions::default(),
            kernel: KernelModel::default(),
            tc: TcVersion::default(),
            output: Output::Collect,
            print: to_streams,
        }
    }
}

/// What the runs of a script came to.
pub struct ScriptRuns {
    /// The script's file.
    pub script: PathBuf,
    /// The arguments of each run.
    pub turns: Vec<Vec<String>>,
    /// The machine they configured.
    pub machine: Machine,
    /// How each went.
    pub outcomes: Vec<ScriptRun>,
    /// It is a listing with nothing but the kernel's defaults: a sentence.
    pub only_defaults: Option<String>,
    /// The machines and cables that it lays.
    pub test_bed: TestBed,
    /// It is a script, whose output has what its commands said.
    pub is_script: bool,
}

impl ScriptRuns {
    /// Runs a script; another policy file is carried out once. `before` gets the number of each run of
    /// several before it begins, from 0.
    ///
    /// # Errors
    /// It cannot be read or run. Errors inside a script are in [`ScriptRuns::outcomes`].
    pub fn of(
        script: &Path,
        options: &RunOptions,
        before: &mut dyn FnMut(usize),
    ) -> Result<ScriptRuns, LoadError> {
        let bytes = match input_file::read(script, MAX_POLICY) {
            Ok(bytes) => bytes,
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::TimedOut)
                    && !script.is_dir() =>
            {
                return Err(LoadError::File(script.to_owned(), error.to_string()));
            }
            // What cannot be read for another reason is reported where the script is run.
            Err(_) => Vec::new(),
        };
        match sniff(&script.to_string_lossy(), &bytes) {
            Ok(InputFormat::Script) if input_file::is_handed_over(script) => {
                let why = "a script must be a file, because it is run; save it first";
                Err(LoadError::File(script.to_owned(), why.to_owned()))
            }
            Err(
                error @ (FormatError::Foreign(_)
                | FormatError::LooksLike(_)
                | FormatError::ForeignJson
                | FormatError::BrokenTcJson(_)),
            ) => Err(LoadError::File(script.to_owned(), error.to_string())),
            // A file that cannot be read, or has no known format, has the message for scripts: this is for
            // scripts.
            Ok(InputFormat::Script) | Err(_) => run_script(script, options, before),
            Ok(_) => {
                let loaded = crate::read(&[script.to_owned()], &options.to_read())?;
                Ok(ScriptRuns::of_loaded(script, options, loaded))
            }
        }
    }

    /// Carries out a policy that is in no file; a script cannot be run so.
    ///
    /// ```
    /// use tidegate_loader::runs::{RunOptions, ScriptRuns};
    ///
    /// let batch = "qdisc add dev eth0 root fq_codel\n";
    /// let mut runs = ScriptRuns::of_text("home.batch", batch, &RunOptions::default()).unwrap();
    /// assert!(runs.to_json().contains("\"kind\": \"fq_codel\""));
    /// ```
    ///
    /// # Errors
    /// As for [`read_text`](crate::read_text).
    pub fn of_text(name: &str, text: &str, options: &RunOptions) -> Result<ScriptRuns, LoadError> {
        let loaded = crate::read_text(name, text, &options.to_read())?;
        Ok(ScriptRuns::of_loaded(Path::new(name), options, loaded))
    }

    /// What is not known of the kernel, as [`LoadedPolicy::not_known_of_kernel`].
    pub fn not_known_of_kernel(&mut self) -> Option<String> {
        tidegate_inspect::not_known_of(&mut self.machine.gateway, self.machine.now)
    }

    fn of_loaded(script: &Path, options: &RunOptions, loaded: LoadedPolicy) -> ScriptRuns {
        let LoadedPolicy { machine, outcomes, only_defaults, .. } = loaded;
        let (script, turns) = (script.to_owned(), options.turns.clone());
        ScriptRuns {
            script,
            turns,
            machine,
            outcomes,
            only_defaults,
            test_bed: TestBed::default(),
            is_script: false,
        }
    }
}

impl RunOptions {
    /// How a file that is no script is loaded.
    fn to_read(&self) -> ReadOptions {
        ReadOptions {
            devices: self.devices.clone(),
            sandbox: self.sandbox.clone(),
            kernel: self.kernel,
            tc: self.tc,
            ..ReadOptions::default()
        }
    }
}

fn run_script(
    script: &Path,
    options: &RunOptions,
    before: &mut dyn FnMut(usize),
) -> Result<ScriptRuns, LoadError> {
    let capture = CaptureOptions {
        timeout: options.sandbox.timeout,
        private: options.sandbox.private,
        answers: options.sandbox.answers.clone(),
        stubs: options.sandbox.stubs.clone(),
        output: options.output,
        print: options.print,
        devices: options.devices.clone(),
        ..CaptureOptions::default()
    };
    let mut machine = Machine::for_script(options.devices.iter().map(String::as_str));
    machine.distributions = distributions::installed();
    machine.now = STARTED;
    machine.gateway.set_kernel(options.kernel);
    machine.tc = options.tc;
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut traced = Traced::new(machine.shim(&mut pool, &mut draws));
    let mut outcomes =
        run_in_turn(script, &options.turns, &capture, &mut traced, before).map_err(LoadError::Capture)?;
    let wiring = traced.wiring();
    let chosen = Chosen::of(traced, script, options.sandbox.netns.as_deref())
        .map_err(|why| LoadError::File(script.to_owned(), why))?;
    chosen.leave(&mut outcomes);
    if let Some(netns) = chosen.netns {
        machine = netns.machine;
    }
    outcomes.iter_mut().for_each(inside::point_inside);
    let calls = outcomes.iter().flat_map(|outcome| outcome.stubbed.iter().cloned()).collect();
    let test_bed = TestBed::new(wiring, calls);
    let (script, turns) = (script.to_owned(), options.turns.clone());
    Ok(ScriptRuns { script, turns, machine, outcomes, only_defaults: None, test_bed, is_script: true })
}
