use std::io;

use serde::{Deserialize, Serialize};

use crate::wire::{Answer, Wire};

const QUEUE: &str = "cost";
/// How many jobs a batch has.
const BATCH: usize = 100;
/// What programs send besides.
const HEADERS: &str = "User-Agent: http-cost\r\nAccept: */*\r\nContent-Type: application/json\r\n";

/// What is asked of a service again and again; each takes away what the one before has published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// A job of 100 bytes a request.
    Publish,
    /// A request takes a job, another acknowledges it.
    Take,
    /// A hundred of these jobs a request.
    PublishBatch,
    /// A request takes a hundred jobs, another acknowledges them.
    TakeBatch,
}

#[derive(Deserialize)]
struct Taken {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    lease: String,
}

impl Load {
    /// Each, in their order.
    pub const ALL: [Load; 4] = [Load::Publish, Load::Take, Load::PublishBatch, Load::TakeBatch];

    /// What it is called in a table.
    pub fn name(self) -> &'static str {
        match self {
            Load::Publish => "publish",
            Load::Take => "take, ack",
            Load::PublishBatch => "publish 100",
            Load::TakeBatch => "take 100, settle",
        }
    }

    /// How many jobs it is about each time.
    pub(crate) fn jobs(self) -> usize {
        match self {
            Load::Publish | Load::Take => 1,
            Load::PublishBatch | Load::TakeBatch => BATCH,
        }
    }

    /// How often it is done, for so many single jobs.
    pub(crate) fn times(self, jobs: usize) -> usize {
        match self {
            Load::Publish | Load::Take => jobs,
            Load::PublishBatch | Load::TakeBatch => (10 * jobs).div_ceil(BATCH),
        }
    }

    /// Does it once, and answers with how many jobs: a take may bring fewer than it may.
    pub(crate) async fn once(self, wire: &mut Wire) -> io::Result<usize> {
        match self {
            Load::Publish => {
                ask(wire, &format!("/v1/queues/{QUEUE}/jobs"), &body(), 201).await?;
            }
            Load::PublishBatch => {
                let batch = vec![format!("{{\"payload\":{}}}", body()); BATCH].join(",");
                ask(wire, &format!("/v1/queues/{QUEUE}/batch"), &format!("[{batch}]"), 200).await?;
            }
            Load::Take => {
                let leases = take(wire, 1).await?;
                for lease in &leases {
                    ask(wire, &format!("/v1/leases/{lease}/ack"), "", 200).await?;
                }
                return Ok(leases.len());
            }
            Load::TakeBatch => {
                let leases = take(wire, BATCH).await?;
                let acks =
                    leases.iter().map(|lease| format!("{{\"lease\":\"{lease}\",\"verdict\":\"ack\"}}"));
                let acks: Vec<String> = acks.collect();
                if !acks.is_empty() {
                    ask(wire, "/v1/leases/settle", &format!("[{}]", acks.join(",")), 200).await?;
                }
                return Ok(leases.len());
            }
        }
        Ok(self.jobs())
    }
}

/// 100 bytes of JSON.
fn body() -> String {
    format!("{{\"order\":17,\"text\":\"{}\"}}", "x".repeat(78))
}

async fn take(wire: &mut Wire, count: usize) -> io::Result<Vec<String>> {
    let answer = ask(wire, &format!("/v1/take?queue={QUEUE}&count={count}"), "", 200).await?;
    let Taken { jobs } = serde_json::from_str(&answer.body)?;
    Ok(jobs.into_iter().map(|job| job.lease).collect())
}

async fn ask(wire: &mut Wire, path: &str, body: &str, status: u16) -> io::Result<Answer> {
    let headers = format!("{HEADERS}Content-Length: {}\r\n", body.len());
    let request = wire.head("POST", path, &headers) + body;
    wire.send(request.as_bytes()).await?;
    let answer = wire.answer().await?;
    if answer.status != status {
        return Err(io::Error::other(format!("{path}: {} {}", answer.status, answer.body)));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_as_many_bytes_as_is_said() {
        assert_eq!(body().len(), 100);
    }
}
