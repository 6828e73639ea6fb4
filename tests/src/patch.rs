//! The planted bugs of the Lua scripts.

use delayline_embedded::Bug;
use delayline_lua::Script;

/// A text of the scripts, in how many of them it stands (once in each), and what a bug makes of it.
struct Patch {
    bug: Bug,
    find: &'static str,
    scripts: usize,
    replace: &'static str,
}

/// The scripts that this bug changes, and their sources then.
///
/// # Panics
/// If the bug's text does not stand in as many scripts as the patch says, once in each.
#[must_use]
pub fn patched(bug: Bug) -> Vec<(&'static Script, String)> {
    let mut patched: Vec<(&'static Script, String)> = Vec::new();
    for patch in PATCHES.iter().filter(|patch| patch.bug == bug) {
        let mut scripts = 0;
        for script in delayline_lua::all() {
            match script.written().matches(patch.find).count() {
                0 => continue,
                1 => scripts += 1,
                more => panic!("{bug}: {more} times in {}: {:?}", script.name, patch.find),
            }
            let known = patched.iter().position(|(known, _)| known.name == script.name);
            let at = known.unwrap_or_else(|| {
                patched.push((script, script.written().to_owned()));
                patched.len() - 1
            });
            patched[at].1 = patched[at].1.replacen(patch.find, patch.replace, 1);
        }
        assert_eq!(scripts, patch.scripts, "{bug}: the number of scripts with {:?}", patch.find);
    }
    assert!(!patched.is_empty(), "{bug} changes no script");
    patched
}

/// What all of the script's replies from Redis have of entries at most: the largest part of the sessions, as fields and
/// values, and what few jobs have.
const READ_MOST: &str = "5000";

/// The script, which fails if it reads more than a script may at once; no plan and no sequence asks for many jobs.
///
/// # Panics
/// If a script calls Redis in another way than is known here.
#[must_use]
pub fn metered(source: &str) -> String {
    let metered = source.replacen(CALL, &METERED_CALL.replace("READ_MOST", READ_MOST), 1);
    assert!(metered != source || !source.contains("redis.pcall(command"), "the call of Redis is known");
    metered
}

const CALL: &str =
    "local function call(command, key, ...)\n  local answer = redis.pcall(command, key, ...)\n";
const METERED_CALL: &str = "local entries_read = 0
local function call(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and not answer.err then
    entries_read = entries_read + (type(answer[2]) == 'table' and #answer[2] or #answer)
    if entries_read > READ_MOST then return error('more than READ_MOST entries are read') end
  end
";

const fn patch(bug: Bug, scripts: usize, find: &'static str, replace: &'static str) -> Patch {
    Patch { bug, find, scripts, replace }
}

/// How many scripts sweep sessions.
const SWEEPING: usize = 5;

const PATCHES: &[Patch] = &[
    patch(
        Bug::AckWithoutFenceCheck,
        1,
        "if s.phase ~= 'L' or s.fence ~= fence then",
        "if s.phase ~= 'L' then",
    ),
    patch(
        Bug::ErrorAfterLease,
        1,
        "apply()\nbegin_with_removal()\n\nif want == 0 then",
        "apply()\nbegin_with_removal()\nif counts.unreadable and #jobs > 0 then error('no state') end\nif want == 0 then",
    ),
    patch(
        Bug::EditIgnoresChanges,
        1,
        "    if is_as_found(i, id) then\n",
        "    if waiting[i] and not kept[id] then\n",
    ),
    patch(
        Bug::EditForgetsAttempts,
        1,
        "    flag(s, BIG, bytes > LARGE_BYTES)\n",
        "    flag(s, BIG, bytes > LARGE_BYTES)\n    s.attempts = 0\n",
    ),
    patch(Bug::EndlessLease, 3, "local LATE_LEASE_MS = 172800000", "local LATE_LEASE_MS = 4503599627370496"),
    patch(Bug::EarlyPromotion, 1, "if due > now then return ids", "if due > now + 1 then return ids"),
    patch(
        Bug::EarlyPromotion,
        1,
        "pcall('ZRANGEBYSCORE', KEYS[5], '-inf', now_text,",
        "pcall('ZRANGEBYSCORE', KEYS[5], '-inf', format('%.0f', now_text + 1),",
    ),
    patch(
        Bug::EarlyPromotion,
        1,
        "head[2 * n + 2] <= now_text do",
        "head[2 * n + 2] <= format('%.0f', now_text + 1) do",
    ),
    patch(Bug::LeaseForgotten, 1, "enters('leased', job.id, lease_end)", ""),
    patch(Bug::LostCounter, 10, "    vanishes(id, s)\n    count('expired', 1)\n", "    vanishes(id, s)\n"),
    patch(Bug::UnboundedMove, 1, "= first_due(want)", "= first_due(-1)"),
    patch(Bug::UnboundedTend, 1, "local limit = tonumber(ARGV[2])", "local limit = 1000000"),
    patch(Bug::SessionIgnored, 4, "if not text then return 'new' end", "if true then return 'new' end"),
    patch(
        Bug::PublishNotIdempotent,
        1,
        "if session == 'superseded' then return {'superseded', num(us)} end\n\
         if session == 'again' then return {'again', num(us), past[3], past[4]} end\n",
        "",
    ),
    patch(
        Bug::ReserveNotIdempotent,
        1,
        "if session == 'superseded' then return {'superseded', num(us)} end\n\
         if session == 'again' then return granted_before(past) end\n",
        "",
    ),
    patch(
        Bug::CancelNotIdempotent,
        1,
        "if session == 'superseded' or past and past[4] then return {'superseded', num(us)} end\n\
         if session == 'again' then return {'again', num(us), past[3]} end\n",
        "",
    ),
    patch(
        Bug::CancelNotIdempotent,
        1,
        "if session == 'superseded' or past and not past[4] then return {'superseded', num(us)} end\n\
         if session == 'again' then return moved_before(past) end\n",
        "",
    ),
    patch(Bug::SupersededAccepted, 4, "if this < last then return 'superseded' end", ""),
    patch(
        Bug::AgendaLate,
        12,
        "local function lower_agenda(at)\n",
        "local function lower_agenda(at)\n  at = at and at + 1000\n",
    ),
    patch(Bug::AgendaNotLowered, 1, "lower_agenda(soon)\n-- Nobody can wait", "-- Nobody can wait"),
    patch(Bug::AgendaWithoutLeases, 12, "min(next_due, whole(meta.lo))", "next_due"),
    patch(Bug::AgendaWithoutLeases, 1, "if #jobs > 0 and at < now +", "if #jobs > 0 and at and at < now +"),
    patch(
        Bug::WrongLeaseEnd,
        1,
        "enters('leased', job.id, lease_end)",
        "enters('leased', job.id, lease_end - 1000)",
    ),
    patch(Bug::ReapLate, 1, "num(min(whole(meta.lo), lease_end))", "num(lease_end)"),
    patch(Bug::ExtendShortens, 1, "call('ZADD', KEYS[6], 'XX', 'GT', ", "call('ZADD', KEYS[6], 'XX', "),
    patch(Bug::ExtendShortens, 1, "put('ZADD', KEYS[6], 'XX', 'GT', ", "put('ZADD', KEYS[6], 'XX', "),
    patch(
        Bug::FenceShared,
        1,
        "math.max(meta_num('fence') + 1, us)",
        "math.max(meta_num('fence'), us - us % 1000000)",
    ),
    patch(Bug::AttemptNotCounted, 1, "= math.min(s.attempts + 1, 9999), ", "= math.min(s.attempts, 9999), "),
    patch(Bug::OneAttemptMore, 1, "if s.attempts >= s.max then return", "if s.attempts > s.max then return"),
    patch(
        Bug::SnoozeSpendsAttempt,
        1,
        "    count('snoozed', 1)\n    s.attempts = s.attempts - 1\n",
        "    count('snoozed', 1)\n",
    ),
    patch(
        Bug::NackWithoutDelay,
        1,
        "    s.reason = reason\n    return waits(id, s, after(delay))\n",
        "    s.reason = reason\n    return waits(id, s, now)\n",
    ),
    patch(Bug::NackLosesReason, 1, "    s.reason = reason\n", ""),
    patch(Bug::ReleaseLosesDue, 1, "delay > 0 and after(delay) or s.due", "after(delay)"),
    patch(Bug::DeadLetterLost, 10, "  enters('dead', id, now)\n", ""),
    patch(Bug::RequeueKeepsAttempts, 1, "s.attempts, s.due = 0, now", "s.due = now"),
    patch(
        Bug::CancelLeavesGhost,
        1,
        "letters[i], seen[id] = 'o', true\n    leaves('due', id)\n",
        "letters[i], seen[id] = 'o', true\n",
    ),
    patch(
        Bug::CancelsLeased,
        1,
        "elseif waiting[i] then\n    letters[i], seen[id] = 'o', true\n",
        "elseif waiting[i] or s and s.phase == 'L' then\n    letters[i], seen[id] = 'o', true\n    leaves('leased', id)\n",
    ),
    patch(
        Bug::ReplacesLeased,
        1,
        "elseif waits and how == 'r' then",
        "elseif (waits or string.sub(states[i], 1, 1) == 'L') and how == 'r' then",
    ),
    patch(Bug::DuplicateReplaces, 1, "elseif waits and how == 'r' then", "elseif waits then"),
    patch(
        Bug::PausedGrants,
        1,
        "local open = not meta.paused and not meta.forward",
        "local open = not meta.forward",
    ),
    patch(Bug::ExpiredGranted, 3, "if expiry and expiry <= now then", "if false then"),
    patch(Bug::MaxBytesIgnored, 3, "if bytes > max_bytes then", "if false then"),
    patch(
        Bug::ForwardsTwice,
        1,
        "  local done, failed = append(kind, plain)\n",
        "  append(kind, plain)\n  local done, failed = append(kind, plain)\n",
    ),
    patch(
        Bug::NoWakeOnPublish,
        1,
        "announce()\nreturn {'ok', num(us), num(us), letters}",
        "woken = false\nannounce()\nreturn {'ok', num(us), num(us), letters}",
    ),
    patch(Bug::ConflictTakenForRepeat, 1, "return first ~= verdict and first or 'r'", "return 'r'"),
    patch(Bug::GateIgnored, 15, "if meta.gate == '' then meta.gate = nil end", "meta.gate = nil"),
    patch(Bug::GateIgnored, 1, "states[i].flags >= GATED then", "false then"),
    patch(
        Bug::BrokenStateWaits,
        3,
        "elseif head == 'unreadable' or broken then",
        "elseif broken and head ~= 'unreadable' then\n      enters('due', id, dues[i])\n    elseif head == 'unreadable' then",
    ),
    patch(Bug::LostLowerBound, 2, "if not lo or lo > now and", "if not lo or lo == 0 or lo > now and"),
    patch(
        Bug::IndexNotMended,
        15,
        "if not meta.born then set('born', num(us)) end",
        "if meta.born then return end\n  set('born', num(us))",
    ),
    patch(Bug::PumpLeaseUnbounded, 1, " and (lease_ms == 0 or at <= longest)", ""),
    patch(Bug::SilentBirth, 1, "if newborn then head = head or now end", ""),
    patch(Bug::NoWakeOnTend, 1, "woken = ready and not meta.paused", "woken = false"),
    patch(
        Bug::ConfigNotFixed,
        1,
        "return {'ok', us, fixed[1], fixed[2], fixed[3], KEYS[1]}",
        "redis.call('UNLINK', KEYS[1])\nreturn {'ok', us, fixed[1], fixed[2], fixed[3], KEYS[1]}",
    ),
    patch(
        Bug::SessionsNotSwept,
        SWEEPING,
        "if meta_num('sessions') <= KEEP_SESSIONS then return end",
        "if true then return end",
    ),
    patch(
        Bug::UnboundedSweep,
        SWEEPING,
        "local most = math.min(math.max(math.floor((now - at) / 10), SWEEP_LEAST), SWEEP_MOST)",
        "local most = 1000000",
    ),
];
