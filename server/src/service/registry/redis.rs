use std::collections::BTreeMap;
use std::time::Duration;

use delayline_tokio::redis::aio::MultiplexedConnection;
use delayline_tokio::redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo, RedisError, Value, cmd,
};
use delayline_tokio::{Prefix, tuned};
use tokio::sync::Mutex;

use super::RegistryError;
use super::entries::VERSION;

/// Puts a field into a hash, in place of another if it may, and counts the change.
const PUT: &str = "\
local put = redis.call(ARGV[4], KEYS[1], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], ARGV[3], 1)
return put";
/// Removes a field from a hash and its notes, and counts the change.
const REMOVE: &str = "\
local removed = redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
return removed";
/// How many fields are read at once.
const PAGE: usize = 1_000;
/// How long a connection, and each answer, is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The registry in Redis, over a connection of its own, which is made again after any failure.
pub(super) struct Redis {
    client: Client,
    address: String,
    key: String,
    notes: String,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Redis {
    pub(super) fn new(url: &str, prefix: &Prefix) -> Result<Redis, RegistryError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // What the library says of a URL may quote it.
        let unusable = |_| RegistryError::Refused("the URL cannot be used".to_owned());
        let client =
            url.into_connection_info().and_then(|info| Client::open(tuned(info))).map_err(unusable)?;
        let address = client.get_connection_info().addr().to_string();
        let key = format!("{{{prefix}}}:registry");
        let notes = format!("{key}:notes");
        Ok(Redis { client, address, key, notes, connection: Mutex::default() })
    }

    pub(super) async fn put(&self, field: &str, text: &str, replaces: bool) -> Result<bool, RegistryError> {
        let command = if replaces { "HSET" } else { "HSETNX" };
        let mut change = cmd("EVAL");
        change.arg(PUT).arg(1).arg(&self.key).arg(field).arg(text).arg(VERSION).arg(command);
        let is_new: bool = self.ask(&change).await?;
        Ok(replaces || is_new)
    }

    pub(super) async fn remove(&self, field: &str) -> Result<bool, RegistryError> {
        let mut change = cmd("EVAL");
        change.arg(REMOVE).arg(2).arg(&self.key).arg(&self.notes).arg(field).arg(VERSION);
        self.ask(&change).await
    }

    /// All fields, if the version is another.
    pub(super) async fn read(
        &self,
        known: Option<&str>,
    ) -> Result<Option<BTreeMap<String, String>>, RegistryError> {
        let version: Option<String> = self.ask(cmd("HGET").arg(&self.key).arg(VERSION)).await?;
        if version.as_deref() == known {
            return Ok(None);
        }
        let (mut fields, mut cursor) = (BTreeMap::new(), 0_u64);
        loop {
            let mut page = cmd("HSCAN");
            page.arg(&self.key).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, found): (u64, Vec<(String, String)>) = self.ask(&page).await?;
            fields.extend(found);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        // What changed meanwhile is read the next time: by then the version is another one than this.
        fields.extend(version.map(|version| (VERSION.to_owned(), version)));
        Ok(Some(fields))
    }

    pub(super) async fn note(&self, notes: Vec<(String, String)>) -> Result<(), RegistryError> {
        if notes.is_empty() {
            return Ok(());
        }
        self.ask(cmd("HSET").arg(&self.notes).arg(notes)).await.map(|_: Value| ())
    }

    pub(super) async fn notes(&self, fields: Vec<String>) -> Result<Vec<Option<String>>, RegistryError> {
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(cmd("HMGET").arg(&self.notes).arg(fields)).await
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RegistryError> {
        let mut held = self.connection.lock().await;
        let mut connection = match held.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let answered = command.query_async(&mut connection).await;
        match &answered {
            Ok(_) => *held = Some(connection),
            // A replica refuses writes: the address may lead to another server by now.
            Err(why) if why.code().is_some() && why.code() != Some("READONLY") => *held = Some(connection),
            Err(_) => {}
        }
        answered.map_err(|why| self.failed(&why))
    }

    async fn connect(&self) -> Result<MultiplexedConnection, RegistryError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        connecting.await.map_err(|why| {
            let (address, why) = (self.address.clone(), why.to_string());
            RegistryError::Unreachable { address, why }
        })
    }

    fn failed(&self, why: &RedisError) -> RegistryError {
        match why.code() {
            Some("NOPERM") => {
                let (said, key) = (why.detail().unwrap_or_default(), &self.key);
                RegistryError::Refused(format!("NOPERM {said}: allow its user the keys ~{key}*"))
            }
            Some(code) => RegistryError::Refused(format!("{code} {}", why.detail().unwrap_or_default())),
            None => RegistryError::Unknown { address: self.address.clone(), why: why.to_string() },
        }
    }
}
