use std::fmt;
use std::str::FromStr;

/// What a process under a flood of publishes reports, in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flood {
    /// Publishes that were accepted.
    pub published: u64,
    /// Publishes that were not.
    pub refused: u64,
    /// Jobs of the worker that ran.
    pub ran: u64,
    /// The longest that a caller waited.
    pub longest_ms: u64,
    /// The most memory it had; 0 where that cannot be told.
    pub peak_kib: u64,
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flood { published, refused, ran, longest_ms, peak_kib } = self;
        write!(f, "{published} {refused} {ran} {longest_ms} {peak_kib}")
    }
}

impl FromStr for Flood {
    type Err = String;

    fn from_str(line: &str) -> Result<Flood, String> {
        let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers.map_err(|error| error.to_string())?[..] {
            [published, refused, ran, longest_ms, peak_kib] => {
                Ok(Flood { published, refused, ran, longest_ms, peak_kib })
            }
            _ => Err(format!("{line:?} is no report of a flood")),
        }
    }
}
