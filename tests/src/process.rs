use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::until;

const PATIENCE: Duration = Duration::from_secs(60);

/// A process of a test's; it is killed when it is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts it, without the variables that are for the tests: delayline refuses those that are no settings.
    ///
    /// # Panics
    /// If it cannot be run.
    pub fn start(command: &mut Command) -> Process {
        for (name, _) in std::env::vars_os() {
            let is_given = command.get_envs().any(|(given, _)| given == name);
            if !is_given && name.to_string_lossy().starts_with("DELAYLINE_") {
                command.env_remove(name);
            }
        }
        let child = command.spawn();
        Process(
            child
                .unwrap_or_else(|error| panic!("{} cannot be run: {error}", command.get_program().display())),
        )
    }

    /// How it ended, if it has.
    ///
    /// # Panics
    /// If the system does not say.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child of this process")
    }

    /// How long its threads have had a CPU, those that have ended too.
    ///
    /// # Panics
    /// If the system does not say.
    #[cfg(target_os = "linux")]
    pub fn cpu(&self) -> Duration {
        let id = i32::try_from(self.0.id()).expect("the id of a process");
        let clock = nix::time::clock_getcpuclockid(Pid::from_raw(id)).expect("the clock of a process");
        clock.now().expect("its time").into()
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Stops it (SIGSTOP) and waits until it has: what it does is done, and nothing more happens before a `CONT`.
    ///
    /// # Panics
    /// If it has ended.
    pub fn pause(&self) {
        self.signal("STOP");
        let id = i32::try_from(self.0.id()).expect("the id of a process");
        let stopped =
            waitpid(Pid::from_raw(id), Some(WaitPidFlag::WUNTRACED)).expect("a child of this process");
        assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
    }

    /// Sends it a signal by name: `TERM`, `STOP`, `CONT`.
    ///
    /// # Panics
    /// If that cannot be done.
    pub fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let told = Command::new("kill").args([&format!("-{name}"), &id]).status().expect("the kill command");
        assert!(told.success(), "kill -{name} {id}: {told}");
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    ///
    /// # Panics
    /// If it does not end.
    pub fn terminate(mut self) -> ExitStatus {
        self.signal("TERM");
        until("the end of a process", PATIENCE, || self.ended())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
