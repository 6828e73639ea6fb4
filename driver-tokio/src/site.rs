use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use delayline_core::wire::LAYOUT;
use delayline_core::{Fault, Refusal, Reply};
use tokio::sync::watch;

use crate::Error;
use crate::contact::Contact;
use crate::link::lock;

/// Where the jobs are kept, and whether it answers: for log lines, errors and all connections to it. Never has a
/// password.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) address: String,
    trouble: watch::Sender<Option<Trouble>>,
    /// The latest that lasts until somebody changes something.
    refusal: watch::Sender<Option<Refusal>>,
    contact: Mutex<Contact>,
    /// Whether a server that is not there yet is waited for: else an error says that it is missing.
    is_waited_for: bool,
    /// So that an ordinary answer costs no lock.
    is_lost: AtomicBool,
    moves: watch::Sender<u64>,
    /// A test wants to see the engines panic.
    doom: watch::Sender<bool>,
}

/// Why the last attempt to connect failed.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) why: String,
    /// Whether the server was there, and did not let us in.
    pub(crate) is_denied: bool,
}

impl Site {
    pub(crate) fn new(address: String, is_waited_for: bool) -> Site {
        Site {
            address,
            is_waited_for,
            trouble: watch::Sender::new(None),
            refusal: watch::Sender::new(None),
            contact: Mutex::default(),
            is_lost: AtomicBool::new(true),
            moves: watch::Sender::new(0),
            doom: watch::Sender::new(false),
        }
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

    /// Ends with the first refusal that is a reason not to go on.
    pub(crate) async fn refuses(&self, is_enough: impl Fn(Refusal) -> bool) -> Refusal {
        let mut refusal = self.refusal.subscribe();
        let refused = refusal.wait_for(|refusal| refusal.is_some_and(&is_enough)).await;
        match refused.ok().and_then(|refusal| *refusal) {
            Some(refusal) => refusal,
            None => std::future::pending().await,
        }
    }

    /// An attempt to connect for commands, begun at `since`, failed.
    pub(crate) fn failed(&self, trouble: Trouble, since: Instant) {
        if trouble.is_denied {
            self.tell_refusal(Refusal::Denied, &trouble.why);
        } else {
            self.lost(&trouble.why, since);
        }
        self.trouble.send_replace(Some(trouble));
    }

    /// An attempt to connect for commands succeeded.
    pub(crate) fn reached(&self) {
        self.trouble.send_replace(None);
    }

    /// Why nothing can be sent, where there is no connection: what the server refused whose connections were given up, or
    /// just that.
    pub(crate) fn absence(&self) -> Refusal {
        lock(&self.contact).left_for().unwrap_or(Refusal::NotConnected)
    }

    /// A connection ended.
    pub(crate) fn broke(&self) {
        lock(&self.contact).broke(Instant::now());
        self.is_lost.store(true, Ordering::Release);
    }

    /// What was asked, or dialled, at `since` has no answer.
    pub(crate) fn lost(&self, why: &str, since: Instant) {
        let mut contact = lock(&self.contact);
        let is_told = contact.lost(Instant::now(), since) && (self.is_waited_for || contact.was_had());
        self.is_lost.store(contact.is_lost(), Ordering::Release);
        drop(contact);
        if is_told {
            tracing::warn!(address = self.address, why, "Redis cannot be reached: trying again until it can");
        }
    }

    /// The server answered what was asked, or dialled, at `since`.
    pub(crate) fn answered(&self, since: Instant) {
        if !self.is_lost.load(Ordering::Acquire) {
            return;
        }
        let mut contact = lock(&self.contact);
        let outage = contact.answered(Instant::now(), since);
        self.is_lost.store(contact.is_lost(), Ordering::Release);
        drop(contact);
        if let Some(outage) = outage {
            let after = format!("{:.1} s", outage.as_secs_f64());
            tracing::info!(address = self.address, after, "Redis is reached again");
        }
    }

    /// These are the answers to what was asked at `since`, of a server to which a connection was made after so many moves.
    pub(crate) fn heard(&self, replies: &[Reply], since: Instant, moves: u64) {
        self.answered(since);
        let mut latest = None;
        for reply in replies {
            let Reply::Refused(why) = reply else { continue };
            if *why == Refusal::NoScript || latest.replace(*why) == Some(*why) {
                continue;
            }
            self.tell_refusal(*why, &why.to_string());
            if why.is_lasting() {
                self.refusal.send_replace(Some(*why));
            }
            if why.asks_for_another_server() {
                self.leave(moves, *why);
            }
        }
    }

    fn tell_refusal(&self, why: Refusal, said: &str) {
        if lock(&self.contact).refused(Instant::now(), why) {
            let address = &self.address;
            if why.asks_for_another_server() {
                tracing::warn!(
                    address,
                    why = said,
                    "Redis refuses: connecting anew, in case another serves by now"
                );
            } else {
                tracing::warn!(address, why = said, "Redis refuses: trying again");
            }
        }
    }

    fn leave(&self, moves: u64, why: Refusal) {
        let mut contact = lock(&self.contact);
        if contact.leave(Instant::now(), moves, why) {
            self.moves.send_replace(contact.moves());
        }
    }

    /// How often all connections were given up: those made before are used no longer.
    pub(crate) fn moves(&self) -> u64 {
        *self.moves.borrow()
    }

    /// Ends when connections that were made after so many moves are given up.
    pub(crate) async fn moves_on(&self, moves: u64) {
        if self.moves.subscribe().wait_for(|now| *now != moves).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn doom(&self) {
        self.doom.send_replace(true);
    }

    /// Ends when a test wants to see the engines panic.
    pub(crate) async fn doomed(&self) {
        if self.doom.subscribe().wait_for(|is_so| *is_so).await.is_err() {
            std::future::pending::<()>().await;
        }
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
            Fault::OtherDeployment { layout, .. } if layout > LAYOUT => {
                Error::NewerLayout { address: self.address.clone(), found: layout }
            }
            Fault::OtherDeployment { layout, .. } if layout < LAYOUT => {
                Error::OlderLayout { address: self.address.clone() }
            }
            Fault::OtherDeployment { found, wanted, .. } => Error::ShardsMismatch {
                address: self.address.clone(),
                wanted: wanted.count(),
                found: found.count(),
            },
            Fault::Gated { queue, gate } => Error::Gated { queue, gate },
            Fault::OtherSlot { queue, forward } => Error::OtherSlot { queue, forward },
            Fault::Record(error) => Error::Record(error),
            Fault::Config(error) => Error::Config(error),
            Fault::Invalid(invalid) => Error::Invalid(invalid),
            Fault::Broken(why) => Error::Broken(why),
            Fault::Draining => Error::Closed,
        }
    }
}
