use std::fmt;

use delayline_http::{Queue, Sizes};

use crate::cli::table::{Align, Table};

/// Queues as a table of their sizes.
pub(crate) fn table(queues: &[Queue]) -> Table {
    let columns = [
        ("queue", Align::Left),
        ("ready", Align::Right),
        ("delayed", Align::Right),
        ("leased", Align::Right),
        ("dead", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for queue in queues {
        let Sizes { ready, delayed, leased, dead } = queue.sizes;
        let sizes = [ready, delayed, leased, dead].map(|jobs| jobs.to_string());
        let paused = if queue.paused { "paused" } else { "" };
        table.row([queue.name.clone()].into_iter().chain(sizes).chain([paused.to_string()]));
    }
    table
}

/// All that is known of a queue, over several lines.
pub(crate) struct Told<'a>(pub(crate) &'a Queue);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told(queue) = self;
        let paused = if queue.paused { " (paused)" } else { "" };
        writeln!(f, "{}{paused}", queue.name)?;
        let Sizes { ready, delayed, leased, dead } = queue.sizes;
        for (state, jobs) in [("ready", ready), ("delayed", delayed), ("leased", leased), ("dead", dead)] {
            writeln!(f, "  {state:<12} {jobs:>12}")?;
        }
        if let Some(oldest_due) = queue.oldest_due {
            writeln!(f, "  {:<12} {oldest_due}", "oldest due")?;
        }
        for (event, count) in queue.counters.named().iter().filter(|(_, count)| *count > 0) {
            writeln!(f, "  {event:<12} {count:>12}")?;
        }
        if let Some(state) = &queue.push_state {
            writeln!(f, "  {:<12} {state}", "push")?;
        }
        writeln!(f, "  {:<12} {}", "config", serde_json::to_string(&queue.config).unwrap_or_default())
    }
}
