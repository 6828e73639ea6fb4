use bytesize::ByteSize;
use clap::{Args, Subcommand};
use delayline_tokio::Namespace as Name;
use serde_json::json;

use crate::cli::fields::Fields;
use crate::cli::print;
use crate::cli::redis::Redis;
use crate::cli::table::{Align, Table};
use crate::failure::Failure;
use crate::service::namespaces::{Ceilings, Namespaces};

/// Lists namespaces, and says how much one may hold.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A queue is in a namespace by its name: namespace~queue.

Examples:
  delayline namespace list
  delayline namespace limit shop --max-jobs 1000000 --max-bytes 1GiB
  delayline namespace show shop")]
pub struct Namespace {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// Name the namespaces, with the number of their queues; the default one has no name
    #[command(after_help = "\
Examples:
  delayline namespace list
  delayline namespace list --json")]
    List,
    /// Show what a namespace holds, and how much it may
    #[command(after_help = "\
Examples:
  delayline namespace show shop
  delayline namespace show shop --json")]
    Show {
        /// Which one
        namespace: Name,
    },
    /// Say how much a namespace may hold, in place of what was said before
    #[command(after_help = "\
The service refuses a publish that would go beyond; each process of it counts for itself and looks at the rest every 5 s,
so that a little more may come to be there. What publishes by a library is not refused.

Examples:
  delayline namespace limit shop --max-queues 100 --max-jobs 1000000 --max-bytes 1GiB")]
    Limit {
        /// Which one
        namespace: Name,
        /// The most queues
        #[arg(long, value_name = "N")]
        max_queues: Option<u64>,
        /// The most jobs, dead letters included
        #[arg(long, value_name = "N")]
        max_jobs: Option<u64>,
        /// The most bytes of records, estimated
        #[arg(long, value_name = "SIZE")]
        max_bytes: Option<ByteSize>,
    },
    /// Let a namespace hold as much as it likes
    #[command(after_help = "\
Examples:
  delayline namespace unlimit shop")]
    Unlimit {
        /// Which one
        namespace: Name,
    },
}

impl Namespace {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let curl = || "curl http://127.0.0.1:4747/v1/namespaces".to_owned();
        let registry = redis.registry(curl).await?;
        let client = redis.connect(curl).await?;
        let namespaces = Namespaces::new(client.clone(), registry);
        let done = self.work(&namespaces, json).await;
        client.close().await;
        done
    }

    async fn work(&self, namespaces: &Namespaces, json: bool) -> Result<(), Failure> {
        match &self.what {
            What::List => list(namespaces, json).await,
            What::Show { namespace } => show(namespaces, namespace, json).await,
            What::Limit { namespace, max_queues, max_jobs, max_bytes } => {
                let max_bytes = max_bytes.map(|size| size.as_u64());
                let ceilings = Ceilings { max_queues: *max_queues, max_jobs: *max_jobs, max_bytes };
                if ceilings == Ceilings::default() {
                    let wanted = "nothing is limited: give --max-queues, --max-jobs or --max-bytes";
                    return Err(Failure::Usage(wanted.to_owned()));
                }
                namespaces.limit(namespace, ceilings).await?;
                say(namespace, ceilings, json)
            }
            What::Unlimit { namespace } => {
                if namespaces.unlimit(namespace).await? {
                    say(namespace, Ceilings::default(), json)
                } else {
                    Err(Failure::NotLimited(namespace.to_string()))
                }
            }
        }
    }
}

async fn list(namespaces: &Namespaces, json: bool) -> Result<(), Failure> {
    let (found, is_cut) = namespaces.list(|_| true).await?;
    if json {
        let found =
            found.iter().map(|(namespace, queues)| json!({ "namespace": namespace, "queues": queues }));
        let found: Vec<_> = found.collect();
        return print::document(&json!({ "namespaces": found, "is_cut": is_cut }));
    }
    let mut table = Table::new(&[("namespace", Align::Left), ("queues", Align::Right)]);
    for (namespace, queues) in &found {
        let shown = if namespace.is_empty() { "(default)" } else { namespace };
        table.row([shown.to_owned(), queues.to_string()]);
    }
    print::text(table)
}

async fn show(namespaces: &Namespaces, namespace: &Name, json: bool) -> Result<(), Failure> {
    let sample = namespaces.sample(namespace, |_| true).await?;
    let ceilings = namespaces.ceilings(namespace).await?.unwrap_or_default();
    let shown = json!({
        "namespace": namespace.as_str(), "queues": sample.queues.len(), "ready": sample.ready,
        "delayed": sample.delayed, "leased": sample.leased, "dead": sample.dead, "bytes": sample.bytes,
        "ceilings": ceilings
    });
    if json { print::document(&shown) } else { print::text(Fields::of(&shown)) }
}

fn say(namespace: &Name, ceilings: Ceilings, json: bool) -> Result<(), Failure> {
    let shown = json!({ "namespace": namespace.as_str(), "ceilings": ceilings });
    if json { print::document(&shown) } else { print::text(Fields::of(&shown)) }
}
