use super::*;
use crate::Damage;

#[test]
fn a_job_whose_state_cannot_be_read_dies_and_the_others_are_delivered() {
    let mut bed = Bed::new();
    bed.publish([entry("bad", 0), entry("good", 0)]);
    let granted = bed.reserve(2);
    for name in ["bad", "good"] {
        bed.settle(name, granted.fence, nack(0));
    }
    bed.store.damage(&queue(), &Damage::State { id: id("bad"), text: "L12".into() });
    assert_eq!(bed.reserve(2).ids(), ["good"]);
    let dead = bed.inspect("bad").unwrap();
    assert_eq!(dead.state.unwrap().reason.as_str(), "broken state");
    assert_eq!(bed.stats().counters.unreadable, 1);
}
