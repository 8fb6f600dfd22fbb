//! Captures in files: one that is written while packets leave, one that is read.

use crate::output::ResultFile;
use anyhow::Context;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tidegate_replay::CaptureReader;
use tidegate_replay::annotated::{ExternalError, PcapSink};

/// Bytes that are gathered before they are written.
const PIECE: usize = 1 << 16;

/// A file of pcapng in the making; it appears in its place at its end.
pub(crate) struct PcapFile {
    path: PathBuf,
    /// Until the end.
    file: Option<BufWriter<ResultFile>>,
}

impl PcapFile {
    pub(crate) fn begin(path: &Path) -> anyhow::Result<PcapFile> {
        let file = BufWriter::with_capacity(PIECE, crate::output::begin(path)?);
        Ok(PcapFile { path: path.to_owned(), file: Some(file) })
    }

    fn write(&mut self, bytes: &[u8], is_last: bool) -> std::io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes)?;
        match self.file.take_if(|_| is_last) {
            Some(file) => file.into_inner()?.commit(),
            None => Ok(()),
        }
    }
}

impl PcapSink for PcapFile {
    fn put(&mut self, bytes: &[u8], is_last: bool) -> Result<(), ExternalError> {
        Ok(self.write(bytes, is_last).with_context(|| crate::output::cannot_write(&self.path))?)
    }
}

/// Opens a capture to read.
///
/// # Errors
/// It cannot be opened; the error names the file.
pub(crate) fn open(path: &Path) -> anyhow::Result<CaptureReader<File>> {
    let file =
        tidegate_sys::input_file::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(CaptureReader::new(file))
}
