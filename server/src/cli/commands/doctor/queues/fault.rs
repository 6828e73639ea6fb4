use super::mend::Mend;

/// Something that is wrong with one value, and what would mend it.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// What is wrong, said of many: faults that say the same are told together.
    pub(super) problem: String,
    /// With which value.
    pub(super) subject: String,
    /// What mending does, as an order.
    pub(super) change: String,
    pub(super) mend: Mend,
}

impl Fault {
    pub(super) fn new(problem: String, subject: String, change: String, mend: Mend) -> Fault {
        Fault { problem, subject, change, mend }
    }
}
