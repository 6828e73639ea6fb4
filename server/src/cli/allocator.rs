use std::hint::black_box;

use tikv_jemalloc_ctl::{Access as _, AsName as _, arenas};

/// How long free memory stays with the process, for it to use again: 10 s by default.
const STAYS_MS: isize = 1_000;

/// From this size on jemalloc has an arena of its own for what it gives out (`oversize_threshold`), the last one.
const HUGE: usize = 8 << 20;

/// How long memory of that size stays: bodies of 16 MiB that come and go would have much more than they take. Not no time at all:
/// what is freed while another thread is giving back would then stay for ever (`pac_decay_to_limit`).
const HUGE_STAYS_MS: isize = 100;

/// Gives free memory back to the system soon, where the program allocates with jemalloc; elsewhere it changes nothing.
pub(crate) fn give_back_soon() {
    // An arena is made when it is first needed.
    drop(black_box(Vec::<u8>::with_capacity(HUGE)));
    // If something cannot be set, memory goes back later.
    let _ = "arenas.dirty_decay_ms\0".name().write(STAYS_MS);
    let (Ok(mut stays), Ok(arenas)) =
        ("arena.0.dirty_decay_ms\0".name().mib::<[usize; 3]>(), arenas::narenas::read())
    else {
        return;
    };
    let last = (arenas as usize).saturating_sub(1);
    for arena in 0..=last {
        stays[1] = arena;
        let _ = stays.write(if arena == last { HUGE_STAYS_MS } else { STAYS_MS });
    }
}
