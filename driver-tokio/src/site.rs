use std::sync::Mutex;
use std::time::{Duration, Instant};

use delayline_core::{Fault, Refusal};
use tokio::sync::watch;

use crate::Error;
use crate::link::lock;

/// How often an outage that goes on is spoken of.
const REMINDER: Duration = Duration::from_secs(30);

/// Where the jobs are kept, and whether it can be reached: for log lines and errors. Never has a password.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) address: String,
    trouble: watch::Sender<Option<Trouble>>,
    spoken: Mutex<Option<Instant>>,
}

/// Why the last attempt to connect failed.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) why: String,
    /// Whether the server was there, and did not let us in.
    pub(crate) is_denied: bool,
}

impl Site {
    pub(crate) fn new(address: String) -> Site {
        Site { address, trouble: watch::Sender::new(None), spoken: Mutex::new(None) }
    }

    pub(crate) fn last_trouble(&self) -> Option<Trouble> {
        self.trouble.borrow().clone()
    }

    /// Ends with the first failure to connect that is a reason not to go on.
    pub(crate) async fn fails(&self, is_enough: impl Fn(&Trouble) -> bool) -> Trouble {
        let mut trouble = self.trouble.subscribe();
        let failed = trouble.wait_for(|trouble| trouble.as_ref().is_some_and(&is_enough)).await;
        match failed.ok().and_then(|trouble| trouble.clone()) {
            Some(trouble) => trouble,
            None => std::future::pending().await,
        }
    }

    /// An attempt to connect failed.
    pub(crate) fn failed(&self, trouble: Trouble) {
        let mut spoken = lock(&self.spoken);
        if spoken.is_none_or(|at| at.elapsed() >= REMINDER) {
            *spoken = Some(Instant::now());
            let (address, why) = (&self.address, &trouble.why);
            tracing::warn!(address, why, "Redis cannot be reached: trying again until it can");
        }
        self.trouble.send_replace(Some(trouble));
    }

    /// An attempt to connect succeeded.
    pub(crate) fn reached(&self) {
        if lock(&self.spoken).take().is_some() {
            tracing::info!(address = self.address, "Redis is reached again");
        }
        self.trouble.send_replace(None);
    }

    pub(crate) fn not_sent(&self, why: Option<Refusal>) -> Error {
        let detail = self.last_trouble().filter(|_| why.is_none_or(|why| why == Refusal::NotConnected));
        Error::NotSent { address: self.address.clone(), why, detail: detail.map(|trouble| trouble.why) }
    }

    pub(crate) fn unknown(&self) -> Error {
        Error::Unknown { address: self.address.clone() }
    }

    pub(crate) fn error(&self, fault: Fault) -> Error {
        match fault {
            Fault::NotSent(why) => self.not_sent(why),
            Fault::Unknown => self.unknown(),
            Fault::QueueFull { queue, full } => Error::QueueFull { queue, full },
            Fault::Moved { queue, epoch } => Error::Moved { queue, epoch },
            Fault::Record(error) => Error::Record(error),
            Fault::Config(error) => Error::Config(error),
            Fault::Broken(why) => Error::Broken(why),
            Fault::Draining => Error::Closed,
        }
    }
}
