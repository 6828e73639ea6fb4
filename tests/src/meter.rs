use std::collections::BTreeMap;

use delayline_core::wire::Value;

use crate::{Connection, RedisServer};

/// How often a server's commands were called since it was asked last, within scripts too.
#[derive(Debug)]
pub struct Meter {
    connection: Connection,
}

impl Meter {
    /// Counts from now on.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn new(server: &RedisServer) -> Meter {
        let mut meter = Meter { connection: server.connect() };
        meter.reset();
        meter
    }

    /// The calls by command, without this meter's own, and begins anew.
    ///
    /// # Panics
    /// If the connection is lost.
    pub fn read(&mut self) -> BTreeMap<String, u64> {
        let Value::Bytes(text) = self.connection.ask(&["INFO", "commandstats"]) else { panic!("no text") };
        self.reset();
        let text = String::from_utf8_lossy(&text);
        let calls = text.lines().filter_map(|line| {
            let (command, values) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((command.to_string(), values.split(',').next()?.parse().ok()?))
        });
        calls.filter(|(command, _): &(String, u64)| !command.starts_with("config")).collect()
    }

    fn reset(&mut self) {
        self.connection.ask(&["CONFIG", "RESETSTAT"]);
    }
}
