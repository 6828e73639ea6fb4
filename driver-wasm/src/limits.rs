/// What a run may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most requests to Redis and deliveries, all in all. Cloudflare's free plan has 50, the paid one 10,000.
    pub requests: u32,
    /// How many of them the delivery of a job costs.
    pub per_job: u32,
    /// The most requests and deliveries side by side; Cloudflare lets the seventh wait.
    pub at_once: usize,
    /// For how long new jobs are taken. The run may take longer, by a delivery and two round trips.
    pub for_ms: u64,
    /// How far ahead a due time may be for the run to wait for it.
    pub stay_ms: u64,
    /// The longest that a delivery takes.
    pub delivery_ms: u64,
    /// When an answer of Redis is overdue.
    pub flight_ms: u64,
}

impl Default for Limits {
    /// Those of Cloudflare's free plan, for a cron of a minute.
    fn default() -> Limits {
        Limits {
            requests: 50,
            per_job: 1,
            at_once: 6,
            for_ms: 55_000,
            stay_ms: 55_000,
            delivery_ms: 10_000,
            flight_ms: 5_000,
        }
    }
}

impl Limits {
    /// The longest that a run takes.
    pub fn longest_ms(&self) -> u64 {
        self.for_ms + self.delivery_ms + 2 * self.flight_ms
    }

    /// How long leases must last, so that none has ended before the run has. Nothing is renewed.
    pub fn lease_ms(&self) -> u64 {
        (self.longest_ms() + 5_000).clamp(1_000, 86_400_000)
    }
}
