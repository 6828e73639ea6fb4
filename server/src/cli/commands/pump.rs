use std::time::Duration;

use clap::Args;
use delayline_tokio::Span;

use crate::cli::redis::Redis;
use crate::cli::stop::Stop;
use crate::failure::Failure;

/// Stands for the pump lease until it is told to stop, and consumes nothing: jobs expire, dead letters are purged by their
/// retention and forwarding goes on, though no service and no worker runs. Any number may stand; one at a time tends.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
It stands for the pump lease until it is told to stop. Any number may stand, services and workers among them; one at a
time tends. Delivery does not need it: who takes jobs sees to that.

Examples:
  delayline pump                                 # until told to stop
  delayline pump --for 1s                        # from cron, say --for 50s every minute")]
pub struct Pump {
    /// Stop after so long
    #[arg(long = "for", value_name = "TIME")]
    limit: Option<Span>,
}

impl Pump {
    pub(crate) async fn run(&self, redis: &Redis) -> Result<(), Failure> {
        let url = redis.shared_url().ok_or(Failure::NeedsRedis("tends its own queues"))?;
        let stop = Stop::listen()?;
        let client = tokio::select! {
            connected = redis.patient_builder().pump(true).connect(url) => connected?,
            () = stop.clone().asked() => return Ok(()),
        };
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!("delayline {version} tending the queues in {}", client.address());
        tokio::select! {
            () = self.over() => tracing::info!("stopping: --for is over"),
            () = stop.clone().asked() => {}
        }
        tokio::select! {
            () = client.close() => Ok(()),
            () = stop.insisted() => Err(Failure::Interrupted),
        }
    }

    async fn over(&self) {
        match self.limit {
            Some(limit) => tokio::time::sleep(Duration::from_millis(limit.0)).await,
            None => std::future::pending().await,
        }
    }
}
