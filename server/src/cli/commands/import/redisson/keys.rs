/// The keys of a delayed queue of Redisson.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// A list: what is due. The queue's own name.
    pub(super) ready: String,
    /// A sorted set: when each element is due, in ms.
    pub(super) timeouts: String,
    /// A list: the same elements by age.
    pub(super) ages: String,
    /// Where it is announced when something becomes due.
    pub(super) channel: String,
}

impl Keys {
    pub(super) fn of(name: &str) -> Keys {
        Keys {
            ready: name.to_owned(),
            timeouts: beside("redisson_delay_queue_timeout", name),
            ages: beside("redisson_delay_queue", name),
            channel: beside("redisson_delay_queue_channel", name),
        }
    }
}

/// A key in the slot of the queue's own: with its name in braces, unless that has some.
pub(super) fn beside(key: &str, name: &str) -> String {
    if name.contains('{') { format!("{key}:{name}") } else { format!("{key}:{{{name}}}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_put_into_braces_unless_it_has_some() {
        assert_eq!(Keys::of("orders").timeouts, "redisson_delay_queue_timeout:{orders}");
        assert_eq!(Keys::of("{shop}:orders").ages, "redisson_delay_queue:{shop}:orders");
        assert_eq!(Keys::of("a:b").channel, "redisson_delay_queue_channel:{a:b}");
    }
}
