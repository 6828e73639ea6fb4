use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use delayline_tokio::Worker;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use super::bed::Bed;
use super::burst::body;
use super::pace::share;
use super::rounds::{Base, Rounds, Sample, found};
use crate::endpoint::Endpoint;
use crate::http_cost::Load;
use crate::scratch::Scratch;
use crate::wire::Wire;
use crate::{block_on, service};

const PATIENCE: Duration = Duration::from_secs(60);

/// How long it takes from nothing to a first job.
pub struct Startup {
    /// The program whose `serve` is measured too.
    pub serve: Option<PathBuf>,
}

impl Rounds for Startup {
    fn name(&self) -> &'static str {
        "startup"
    }

    fn round(&mut self, bed: &mut Bed, _: usize, jobs: usize) -> Vec<Sample> {
        let many = |once: &mut dyn FnMut() -> f64| {
            let mut ms: Vec<f64> = (0..jobs).map(|_| once()).collect();
            ms.sort_by(f64::total_cmp);
            [("ms to the first job, p50", share(&ms, 0.5)), ("ms to the first job, max", share(&ms, 1.0))]
        };
        let new = many(&mut || {
            forget(bed);
            block_on(client(bed))
        });
        let known = many(&mut || block_on(client(bed)));
        let mut all = vec![found("a client, on a new server", &Base::None, &new)];
        all.push(found("a client, on a known server", &Base::None, &known));
        if let Some(program) = &self.serve {
            let served = many(&mut || {
                forget(bed);
                serve(bed, program)
            });
            all.push(found("serve, on a new server", &Base::None, &served));
        }
        all.concat()
    }
}

/// Makes the server one that nobody has used.
fn forget(bed: &mut Bed) {
    bed.ask(&["FLUSHALL", "SYNC"]);
    bed.ask(&["SCRIPT", "FLUSH"]);
}

/// From the connection to the first job that a worker runs.
async fn client(bed: &Bed) -> f64 {
    let start = Instant::now();
    let client = bed.client().await;
    let queue = client.bytes("first").expect("a name");
    let (began, mut begins) = unbounded_channel();
    let worker = Worker::new(&client).queue(&queue, move || {
        let _ = began.send(());
        async {}
    });
    let worker = tokio::spawn(worker.run());
    queue.publish_bytes(body(0)).await.expect("a job is published");
    timeout(PATIENCE, begins.recv()).await.expect("it begins").expect("a worker that runs");
    let took = start.elapsed();
    client.close().await;
    worker.await.expect("no panic").expect("a worker that ran");
    took.as_secs_f64() * 1e3
}

/// From the start of the process to the first job that is taken.
fn serve(bed: &Bed, program: &Path) -> f64 {
    let scratch = Scratch::new("startup");
    let begun = Instant::now();
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--redis", &bed.server().url()]);
    let (_process, address) = service::start(&mut command, &scratch.path().join("log"));
    block_on(async {
        let mut wire = Wire::open(std::net::Ipv4Addr::LOCALHOST, &Endpoint::from(address)).await?;
        Load::Publish.once(&mut wire).await?;
        Load::Take.once(&mut wire).await
    })
    .map(|jobs| assert_eq!(jobs, 1, "a job is taken"))
    .expect("a first job");
    begun.elapsed().as_secs_f64() * 1e3
}
