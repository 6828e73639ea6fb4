mod body;
mod entry;
mod handle;
mod liveness;
mod walk;

use clap::Args;
use delayline_tokio::Namespace;

use self::walk::Walk;
use super::journal::Journal;
use super::mover::Mover;
use crate::cli::redis::Redis;
use crate::failure::Failure;

/// How often all is looked at again while a server of lmstfy still works there: jobs move from place to place meanwhile.
const PASSES: usize = 10;

/// Moves the jobs of lmstfy: those of its timer set, its ready lists and its dead lists.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Queue q of namespace ns becomes queue ns~q. Ids, bodies, due times, the time that a job lives on and the order of ready jobs are
kept; the tries that remain become the most attempts, without a backoff; attributes become headers lmstfy-attr-NAME. Jobs
of a dead list become dead letters, and so do jobs whose last try was running.

Stop the servers of lmstfy first: a job that one of its consumers still holds runs once more when its ttr ends. --redis
is where the jobs go, and also where lmstfy keeps them, unless --from says another: an import in place needs no room beside.

What cannot be moved is left where it is, told with a count and the first bytes of some in hex, and makes the exit code 1.
A run that was killed is gone on with by the same line: no job is lost or doubled, since the queues are paused until it is
done. See docs/imports.md.

Examples:
  delayline import lmstfy --redis redis://127.0.0.1/ --dry-run
  delayline import lmstfy --redis redis://127.0.0.1/
  delayline import lmstfy --redis redis://127.0.0.1/ --namespace shop
  delayline import lmstfy --from redis://127.0.0.1/ --live --json")]
pub(crate) struct Lmstfy {
    /// Where lmstfy keeps its jobs; where --redis says if it is left out
    #[arg(long, value_name = "URL", hide_default_value = true)]
    from: Option<String>,
    /// Only the queues of this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<Namespace>,
    /// Move nothing, but count, and say what could not be moved
    #[arg(long)]
    dry_run: bool,
    /// Go on though a server of lmstfy still works there: a job that its consumers hold may run twice
    #[arg(long)]
    live: bool,
}

impl Lmstfy {
    pub(super) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let own = redis.shared_url().ok_or(Failure::NeedsRedis("cannot be imported to"))?;
        let from = self.from.as_deref().unwrap_or(own);
        let journal = Journal::new(|name| format!("{name}/lmstfy"));
        let mut mover = Mover::begin(redis, from, journal, self.dry_run, json).await?;
        let done = self.import(&mut mover).await;
        mover.end(done, "lmstfy").await
    }

    async fn import(&self, mover: &mut Mover) -> Result<(), Failure> {
        if !self.live && !self.dry_run {
            liveness::must_be_stopped(&mut mover.source).await?;
        }
        let mut walk = Walk::new(mover, self.namespace.clone());
        walk.count_before().await?;
        for _ in 0..PASSES {
            if walk.pass().await? == 0 || self.dry_run {
                break;
            }
        }
        walk.count_after().await
    }
}
