use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::redis_server::RedisServer;

/// An address that leads to a Redis, and later to another.
pub(crate) struct Proxy {
    port: u16,
    target: Arc<Mutex<PathBuf>>,
    /// How often the connections of then have fallen silent.
    silences: Arc<watch::Sender<u64>>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn before(redis: &RedisServer) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Arc::new(Mutex::new(redis.socket()));
        let silences = Arc::new(watch::Sender::new(0));
        let (to, silent) = (Arc::clone(&target), Arc::clone(&silences));
        let task = tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let (to, mut silent) = (to.lock().unwrap().clone(), silent.subscribe());
                tokio::spawn(async move {
                    let Ok(mut to) = UnixStream::connect(to).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut from, &mut to) => {}
                        // They stay open, and nothing goes over them.
                        Ok(()) = silent.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Proxy { port, target, silences, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// New connections lead there.
    pub(crate) fn lead_to(&self, redis: &RedisServer) {
        *self.target.lock().unwrap() = redis.socket();
    }

    /// Nothing goes over the connections that there are, and new ones work.
    pub(crate) fn silence(&self) {
        self.silences.send_modify(|silences| *silences += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}
