use std::collections::BTreeSet;
use std::env;

use clap::Command;

use crate::cli::exec;
use crate::cli::nearest;
use crate::failure::Failure;

const OURS: &str = "DELAYLINE_";

/// Refuses variables that look like settings and are none: who misspells where Redis is would else keep jobs in memory.
pub(crate) fn check(command: &Command) -> Result<(), Failure> {
    let set = env::vars_os().filter(|(_, value)| !value.is_empty());
    let set =
        set.map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    unknown(set, &known(command)).map_or(Ok(()), |said| Err(Failure::Variables(said)))
}

/// What is wrong with variables that are set, if something is.
fn unknown(set: impl Iterator<Item = (String, String)>, known: &BTreeSet<String>) -> Option<String> {
    let unknown = set.filter(|(name, value)| {
        name.starts_with(OURS)
            && !known.contains(name)
            && !exec::is_of_job(name)
            && !is_of_kubernetes(name, value)
    });
    let bare: Vec<&str> = known.iter().filter_map(|name| name.strip_prefix(OURS)).collect();
    let said: Vec<String> = unknown
        .map(|(name, _)| {
            let nearest = nearest::nearest(name.trim_start_matches(OURS), bare.iter().copied());
            nearest.map_or_else(
                || format!("{name} is no setting: there are {OURS}{}", bare.join(&format!(", {OURS}"))),
                |nearest| format!("{name} is no setting: is it {OURS}{nearest} that you mean?"),
            )
        })
        .collect();
    (!said.is_empty()).then(|| format!("{}. Unset it, or set it to nothing", said.join(". ")))
}

fn known(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|arg| Some(arg.get_env()?.to_string_lossy().into_owned()));
    own.chain(command.get_subcommands().flat_map(known)).collect()
}

/// Whether Kubernetes sets it, for a service of that name in the same namespace.
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    let is_url = || ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let is_of_port =
        name.split_once("_PORT_").is_some_and(|(_, port)| port.starts_with(|c: char| c.is_ascii_digit()));
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || is_of_port
        || (name.ends_with("_PORT") && is_url())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn said(name: &str, value: &str) -> Option<String> {
        let known = known(&crate::Cli::command());
        unknown([(name.to_owned(), value.to_owned())].into_iter(), &known)
    }

    #[test]
    fn every_setting_is_known_and_what_comes_near_is_named() {
        let known = known(&crate::Cli::command());
        assert!(known.len() > 10 && known.contains("DELAYLINE_REDIS_URL"), "{known:?}");
        for name in &known {
            assert_eq!(said(name, "x"), None);
            let mut misspelt = name.clone();
            misspelt.pop();
            let why = said(&misspelt, "x").unwrap();
            assert!(why.starts_with(&format!("{misspelt} is no setting: ")), "{why}");
            assert!(why.contains("that you mean?"), "{why}");
        }
        assert!(
            said("DELAYLINE_REDIS", "redis://h/")
                .unwrap()
                .contains("is it DELAYLINE_REDIS_URL that you mean?")
        );
        assert!(said("DELAYLINE_XYZZY", "1").unwrap().contains("there are DELAYLINE_"));
    }

    #[test]
    fn what_others_set_is_left_alone() {
        for (name, value) in [
            ("HOME", "/"),
            ("DELAYLINE", "x"),
            ("DELAYLINE_QUEUE", "welcome"),
            ("DELAYLINE_HEADER_TENANT", "acme"),
            ("DELAYLINE_SERVICE_HOST", "10.0.0.1"),
            ("DELAYLINE_SERVICE_PORT", "4747"),
            ("DELAYLINE_SERVICE_PORT_HTTP", "4747"),
            ("DELAYLINE_PORT", "tcp://10.0.0.1:4747"),
            ("DELAYLINE_PORT_4747_TCP", "tcp://10.0.0.1:4747"),
            ("DELAYLINE_PORT_4747_TCP_ADDR", "10.0.0.1"),
            ("DELAYLINE_REDIS_PORT", "tcp://10.0.0.2:6379"),
            ("DELAYLINE_REDIS_SERVICE_HOST", "10.0.0.2"),
        ] {
            assert_eq!(said(name, value), None, "{name}");
        }
        assert!(said("DELAYLINE_PORT", "4747").is_some());
    }
}
