use crate::Random;

/// Which faults a seed has, in percent of the occasions unless said otherwise.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Requests that never arrive.
    pub request_lost: u64,
    /// Replies that never arrive, though the request was carried out.
    pub reply_lost: u64,
    /// Losses that the driver does not notice: only the flight timer does.
    pub silent: u64,
    /// Requests that arrive a second time, later.
    pub duplicated: u64,
    /// Requests and replies that take longer than the flight timer.
    pub late: u64,
    /// Round trips cut after a part of their commands.
    pub cut: u64,
    /// Round trips refused for want of a connection.
    pub refused: u64,
    /// Notifications lost; as many arrive twice.
    pub notice_lost: u64,
    /// Engines that crash, per minute.
    pub crashes: u64,
    /// Engines that stand still for longer than a lease, per minute.
    pub pauses: u64,
    /// Script caches flushed, per minute.
    pub flushes: u64,
    /// Notification connections that break, per minute.
    pub deaf: u64,
}

/// What is broken on purpose, to show that the alarm rings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    /// The store forgets the batches it has seen.
    pub ignore_sessions: bool,
}

impl Faults {
    /// None at all.
    pub const NONE: Faults = Faults {
        request_lost: 0,
        reply_lost: 0,
        silent: 0,
        duplicated: 0,
        late: 0,
        cut: 0,
        refused: 0,
        notice_lost: 0,
        crashes: 0,
        pauses: 0,
        flushes: 0,
        deaf: 0,
    };

    /// A swarm member: half of the faults are absent, the others come in different strengths.
    pub fn draw(random: &mut Random) -> Faults {
        let mut some = |most: u64| if random.percent(50) { random.number(1..=most) } else { 0 };
        Faults {
            request_lost: some(20),
            reply_lost: some(20),
            silent: some(80),
            duplicated: some(20),
            late: some(10),
            cut: some(10),
            refused: some(10),
            notice_lost: some(50),
            crashes: some(4),
            pauses: some(4),
            flushes: some(4),
            deaf: some(4),
        }
    }
}
