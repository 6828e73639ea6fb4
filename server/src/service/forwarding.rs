use delayline_http::Problem;
use delayline_tokio::Forward;
use wildmatch::WildMatch;

/// Where queues may be told over HTTP to forward to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forwarding(Vec<WildMatch>);

impl Forwarding {
    /// `patterns` are of destinations as a config has them, in which `*` stands for any characters and `?` for one.
    pub(crate) fn to(patterns: &[String]) -> Forwarding {
        Forwarding(patterns.iter().map(|pattern| WildMatch::new(pattern)).collect())
    }

    pub(crate) fn check(&self, forward: &Forward) -> Result<(), Problem> {
        let destination = forward.to_string();
        if self.0.iter().any(|pattern| pattern.matches(&destination)) {
            return Ok(());
        }
        let detail = format!(
            "this service lets no queue forward to {destination:?}: start it with --forward-to and a pattern that \
             matches it, or set it with `delayline config set`"
        );
        Err(Problem::new(403, "forward_not_allowed", detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_must_match_one_pattern_as_a_whole() {
        let patterns = ["list:out-*".to_owned(), "stream:events?".to_owned()];
        let forwarding = Forwarding::to(&patterns);
        for (destination, allowed) in [
            ("list:out-1", true),
            ("list:out-", true),
            ("stream:events1", true),
            ("stream:events", false),
            ("stream:out-1", false),
            ("list:out", false),
            ("list:my-list:out-1", false),
        ] {
            let forward: Forward = destination.parse().unwrap();
            assert_eq!(forwarding.check(&forward).is_ok(), allowed, "{destination}");
            assert!(Forwarding::default().check(&forward).is_err(), "{destination}");
            assert!(Forwarding::to(&["*".to_owned()]).check(&forward).is_ok(), "{destination}");
        }
    }
}
