use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::{delayline, run_json, said, write};
use crate::redis_server::RedisServer;

/// A program on a terminal of its own.
struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl Terminal {
    fn start(redis: &RedisServer, words: &[&str]) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let child = spawn(redis, words, &theirs);
        drop(theirs);
        let keyboard = File::from(ours);
        let mut output = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut chunk) {
                shown.lock().unwrap().extend_from_slice(&chunk[..read]);
            }
        });
        Terminal { keyboard, screen, child }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    async fn shows(&self, text: &str) {
        crate::eventually(text, async || self.shown().contains(text).then_some(())).await;
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    async fn ends(&mut self) -> ExitStatus {
        crate::eventually("it ends", async || self.child.try_wait().unwrap()).await
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(redis: &RedisServer, words: &[&str], terminal: &OwnedFd) -> Child {
    let mut command: Command = delayline(Some(redis), words).into_std();
    let end = || terminal.try_clone().unwrap();
    command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color").spawn().unwrap()
}

#[tokio::test]
async fn a_queue_is_destroyed_once_its_name_is_typed() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "precious", "x"]).await;
    for typed in ["yes\n", "\n", "preciou\n", "\u{4}"] {
        let mut terminal = Terminal::start(&redis, &["destroy", "precious"]);
        terminal.shows("holds 1 ready, 0 delayed, 0 leased and 0 dead jobs").await;
        terminal.shows("type its name to destroy it: ").await;
        terminal.types(typed);
        assert_eq!(terminal.ends().await.code(), Some(1));
        terminal.shows("queue precious is untouched").await;
    }
    assert_eq!(said(&redis, &["queues"]).await, "precious\n");
    let mut terminal = Terminal::start(&redis, &["destroy", "precious"]);
    terminal.shows("type its name to destroy it: ").await;
    terminal.types("precious\n");
    assert!(terminal.ends().await.success());
    terminal.shows("precious destroyed, with 1 waiting").await;
    assert_eq!(said(&redis, &["queues"]).await, "");
}

#[tokio::test]
async fn stats_are_redrawn_in_place_and_coloured() {
    let redis = RedisServer::start(&[]).await;
    said(&redis, &["publish", "q", "x"]).await;
    let mut terminal = Terminal::start(&redis, &["stats", "--watch", "100ms"]);
    terminal.shows("\x1b[H\x1b[J\x1b[1mqueue").await;
    said(&redis, &["publish", "other", "x"]).await;
    terminal.shows("other").await;
    let pid = terminal.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(terminal.ends().await.success());
    let mut terminal = Terminal::start(&redis, &["stats", "--color", "never"]);
    assert!(terminal.ends().await.success());
    terminal.shows("other").await;
    assert!(!terminal.shown().contains('\x1b'), "{}", terminal.shown());
}

#[tokio::test]
async fn publishing_many_shows_how_far_it_is() {
    let redis = RedisServer::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let jobs = "{\"payload\":1}\n".repeat(20_000) + "no job\n";
    let file = write(Path::new(folder.path()), "jobs", &jobs);
    let mut terminal = Terminal::start(&redis, &["publish", "q", "--from", &file]);
    assert_eq!(terminal.ends().await.code(), Some(1));
    terminal.shows("20000 of 20001 jobs published").await;
    terminal.shows("line 20001: this is not a job").await;
    assert!(terminal.shown().contains(" jobs  "), "{}", terminal.shown());
    assert_eq!(run_json(&redis, &["stats", "q", "--json"]).await["sizes"]["ready"], 20_000);
}
