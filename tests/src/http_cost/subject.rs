use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::try_join_all;

use super::Load;
use crate::endpoint::Endpoint;
use crate::scratch::Scratch;
use crate::wire::Wire;
use crate::{Process, service};

/// A service whose CPU time is measured.
pub(crate) struct Subject {
    process: Process,
    address: SocketAddr,
    _scratch: Scratch,
}

/// What a load took of it.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Microseconds of CPU a job.
    pub(crate) us: f64,
    /// How many jobs a second.
    pub(crate) jobs_a_second: f64,
}

impl Subject {
    /// With jobs in memory, or in a Redis.
    pub(crate) fn start(program: &Path, cpus: Option<&str>, redis: Option<&str>) -> Subject {
        let scratch = Scratch::new("http-cost");
        let mut command = match cpus {
            None => Command::new(program),
            Some(cpus) => {
                let mut command = Command::new("taskset");
                command.args(["-c", cpus]).arg(program);
                command
            }
        };
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        if let Some(url) = redis {
            command.args(["--redis", url]);
        }
        let (process, address) = service::start(&mut command, &scratch.path().join("log"));
        Subject { process, address, _scratch: scratch }
    }

    /// What the load takes.
    pub(crate) async fn measure(&self, load: Load, connections: usize, jobs: usize) -> Cost {
        let to = Endpoint::from(self.address);
        let opening = (0..connections).map(|_| Wire::open(Ipv4Addr::LOCALHOST, &to));
        let wires = try_join_all(opening).await.expect("a connection");
        let (all, begun) = (load.times(jobs) * load.jobs(), AtomicUsize::new(0));
        let (before, begun_at) = (self.process.cpu(), Instant::now());
        let asking = wires.into_iter().map(|mut wire| {
            let begun = &begun;
            async move {
                let more = |begun| (begun < all).then_some(begun + load.jobs());
                while begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
                    let missing = load.jobs() - load.once(&mut wire).await?;
                    begun.fetch_sub(missing, Ordering::Relaxed);
                }
                Ok(wire)
            }
        });
        let wires: Result<Vec<Wire>, std::io::Error> = try_join_all(asking).await;
        let took = begun_at.elapsed();
        let spent = self.process.cpu().saturating_sub(before);
        wires.unwrap_or_else(|why| panic!("{}: {why}", load.name()));
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let done = all as f64;
        Cost { us: spent.as_secs_f64() * 1e6 / done, jobs_a_second: done / took.as_secs_f64() }
    }
}
