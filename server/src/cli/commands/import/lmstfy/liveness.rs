use std::time::{Duration, Instant};

use delayline_tokio::redis::cmd;

use super::super::connection::Connection;
use super::walk::TIMERS;
use crate::failure::Failure;

/// Each server of lmstfy looks at the timer set every second: one that nobody has read for so long is nobody's.
const IDLE_S: u64 = 3;
/// How long somebody is watched for; what wrote the last job may have been there just now.
const WATCHED: Duration = Duration::from_millis(4_500);
const ASKED: Duration = Duration::from_millis(100);

/// Fails if a server of lmstfy works on this Redis. Where that cannot be seen (there is no timer set, or Redis keeps no
/// idle times) it does not.
pub(super) async fn must_be_stopped(source: &mut Connection) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        let mut object = cmd("OBJECT");
        object.arg("IDLETIME").arg(TIMERS);
        match source.ask::<Option<u64>>(&object).await {
            Ok(Some(idle)) if idle < IDLE_S => {}
            Ok(_) | Err(Failure::Redis { .. }) => return Ok(()),
            Err(failure) => return Err(failure),
        }
        if begun.elapsed() > WATCHED {
            return Err(Failure::StillRunning("a server of lmstfy"));
        }
        tokio::time::sleep(ASKED).await;
    }
}
