use super::plan::{Plan, Rates};

/// Makes a failing plan smaller as long as `fails` says that it still does: halves of its lists go, then quarters and
/// so on down to single lines, then whole kinds of faults. After Turso's simulator, and A. Zeller's delta debugging.
pub fn shrink(plan: &Plan, fails: impl Fn(&Plan) -> bool) -> Plan {
    let mut smallest = plan.clone();
    loop {
        let before = smallest.clone();
        cut(&mut smallest, &fails, |plan| &mut plan.blows);
        cut(&mut smallest, &fails, |plan| &mut plan.acts);
        calm(&mut smallest, &fails);
        if smallest == before {
            return smallest;
        }
    }
}

/// Takes away ever smaller parts of a list.
fn cut<T: Clone>(plan: &mut Plan, fails: &impl Fn(&Plan) -> bool, list: impl Fn(&mut Plan) -> &mut Vec<T>) {
    let mut part = list(plan).len().div_ceil(2);
    while part > 0 {
        let mut from = 0;
        while from < list(plan).len() {
            let mut candidate = plan.clone();
            let lines = list(&mut candidate);
            let to = (from + part).min(lines.len());
            lines.drain(from..to);
            if fails(&candidate) {
                *plan = candidate;
            } else {
                from += part;
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
}

fn calm(plan: &mut Plan, fails: &impl Fn(&Plan) -> bool) {
    let rates: [fn(&mut Rates) -> &mut u64; 14] = [
        |rates| &mut rates.request_lost,
        |rates| &mut rates.reply_lost,
        |rates| &mut rates.silent,
        |rates| &mut rates.duplicated,
        |rates| &mut rates.late,
        |rates| &mut rates.cut,
        |rates| &mut rates.refused,
        |rates| &mut rates.notice_lost,
        |rates| &mut rates.notice_twice,
        |rates| &mut rates.notice_late,
        |rates| &mut rates.fails,
        |rates| &mut rates.hangs,
        |rates| &mut rates.twice,
        |rates| &mut rates.meddles,
    ];
    for rate in rates {
        let mut candidate = plan.clone();
        *rate(&mut candidate.rates) = 0;
        if candidate != *plan && fails(&candidate) {
            *plan = candidate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let plan = Plan::draw(3);
        let (act, blow) = (plan.acts[plan.acts.len() / 2].clone(), plan.acts[0].clone());
        let small = shrink(&plan, |plan| plan.acts.contains(&act) && plan.acts.contains(&blow));
        assert_eq!(small.acts, [blow, act]);
        assert!(small.blows.is_empty());
        assert_eq!(small.rates, Rates { duplicate_ms: plan.rates.duplicate_ms, ..Rates::default() });
    }
}
