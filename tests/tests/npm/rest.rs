use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use delayline_tests::RedisServer;

const TOKEN: &str = "a-token-of-tests";

/// A REST endpoint in front of a Redis, which fails as it is told; it ends when it is dropped.
pub(crate) struct Rest {
    process: Child,
    url: String,
}

impl Rest {
    pub(crate) fn start(redis: &RedisServer) -> Rest {
        let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
        command.args([
            "rest",
            "--redis",
            &redis.url(),
            "--listen",
            "127.0.0.1:0",
            "--token",
            TOKEN,
            "--faults",
        ]);
        command.env("NO_COLOR", "1").env_remove("RUST_LOG").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the command line");
        let log = BufReader::new(process.stderr.take().expect("its log"));
        let mut lines = log.lines().map_while(Result::ok);
        let url =
            lines.find_map(|line| Some(line.split_once("listening on ")?.1.split_once(',')?.0.to_owned()));
        let url = url.expect("an endpoint that says where it listens");
        std::thread::spawn(move || lines.for_each(drop));
        Rest { process, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn token(&self) -> &'static str {
        TOKEN
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
