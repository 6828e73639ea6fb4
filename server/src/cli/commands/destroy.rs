use std::io::{BufRead, IsTerminal};

use clap::Args;
use delayline_tokio::{Queue, QueueName, Sizes};
use serde_json::json;

use crate::cli::print;
use crate::cli::redis::Redis;
use crate::failure::Failure;

/// Removes a queue with its config, its counters and all jobs it holds. On a terminal it asks, and the queue's name must
/// be typed; elsewhere --yes is needed.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Its config and its counters go too. On a terminal it asks, and the queue's name must be typed; elsewhere --yes is needed.

Examples:
  delayline destroy welcome --yes
  delayline destroy welcome --yes --json")]
pub struct Destroy {
    /// Which one
    queue: QueueName,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Destroy {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let may_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !self.yes && !may_ask {
            return Err(Failure::Usage(format!(
                "destroying queue {} removes all that it holds, and there is no terminal to ask at: add --yes",
                self.queue
            )));
        }
        let destroyed =
            redis.with_queue(&self.queue, || self.curl(), async |queue| self.destroy(queue).await);
        let Sizes { waiting, leased, dead } = destroyed.await?;
        if json {
            let destroyed = json!({ "waiting": waiting, "leased": leased, "dead": dead });
            return print::document(&json!({ "queue": self.queue.as_str(), "destroyed": destroyed }));
        }
        print::line(format_args!(
            "{} destroyed, with {waiting} waiting, {leased} leased and {dead} dead jobs",
            self.queue
        ))
    }

    async fn destroy(&self, queue: &Queue) -> Result<Sizes, Failure> {
        let none = || Failure::no_such_queue(&self.queue);
        if !self.yes {
            let stats = queue.stats(0).await?;
            stats.born.ok_or_else(none)?;
            eprintln!(
                "queue {} holds {} ready, {} delayed, {} leased and {} dead jobs",
                self.queue, stats.ready, stats.delayed, stats.leased, stats.dead
            );
            self.confirm()?;
        }
        queue.destroy().await?.ok_or_else(none)
    }

    fn confirm(&self) -> Result<(), Failure> {
        eprint!("type its name to destroy it: ");
        let mut typed = String::new();
        std::io::stdin().lock().read_line(&mut typed)?;
        if typed.trim() == self.queue.as_str() {
            return Ok(());
        }
        Err(Failure::Unconfirmed(self.queue.to_string()))
    }

    fn curl(&self) -> String {
        format!("curl -X DELETE 'http://127.0.0.1:4747/v1/queues/{}'", self.queue)
    }
}
