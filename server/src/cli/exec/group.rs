#[cfg(unix)]
pub(super) use self::unix::{Group, Heir};
#[cfg(windows)]
pub(super) use self::windows::{Group, Heir};

#[cfg(unix)]
mod unix {
    use std::io::{self, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{ChildStdin, Command, Stdio};
    use std::sync::{Mutex, PoisonError};

    use rustix::process::{Pid, Signal, kill_process_group};
    use tokio::process::Child;

    /// Reads the group that runs, a line each time that changes, and at the end kills the last: a pipe ends however its
    /// writer does, by SIGKILL too.
    const LAST_WILL: &str = "trap '' HUP INT TERM USR1 USR2 PIPE; while read -r group; do last=$group; done; \
                             test -z \"$last\" || kill -s KILL -- \"-$last\"";

    /// A process that outlives this one, and then kills the command that it was running.
    pub(in super::super) struct Heir(Mutex<ChildStdin>);

    impl Heir {
        pub(in super::super) fn appoint() -> io::Result<Heir> {
            let mut heir = Command::new("sh");
            heir.args(["-c", LAST_WILL]).process_group(0);
            let mut heir = heir.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            let ear = heir.stdin.take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(Heir(Mutex::new(ear)))
        }

        fn tell(&self, group: Option<Pid>) {
            let line = group.map_or_else(|| "\n".to_owned(), |group| format!("{}\n", group.as_raw_nonzero()));
            let told = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
            if let Err(error) = told {
                tracing::warn!(%error, "the command will outlive this process if that is killed");
            }
        }
    }

    /// A command with all that it started: killed together when this is dropped before the command has ended, or when
    /// this process is killed.
    pub(in super::super) struct Group<'a> {
        leader: Option<Pid>,
        heir: &'a Heir,
    }

    impl Group<'_> {
        pub(in super::super) fn of<'a>(leader: &Child, heir: &'a Heir) -> Group<'a> {
            let id = leader.id().and_then(|id| i32::try_from(id).ok());
            let leader = id.and_then(Pid::from_raw);
            heir.tell(leader);
            Group { leader, heir }
        }

        pub(in super::super) fn ended(mut self) {
            self.leader = None;
        }
    }

    impl Drop for Group<'_> {
        fn drop(&mut self) {
            if let Some(leader) = self.leader {
                let _ = kill_process_group(leader, Signal::KILL);
            }
            self.heir.tell(None);
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::io;
    use std::marker::PhantomData;

    use tokio::process::Child;

    /// There is none: a command outlives this process if that is killed.
    pub(in super::super) struct Heir(());

    impl Heir {
        pub(in super::super) fn appoint() -> io::Result<Heir> {
            Ok(Heir(()))
        }
    }

    /// A command; what it started lives on.
    pub(in super::super) struct Group<'a>(PhantomData<&'a Heir>);

    impl Group<'_> {
        pub(in super::super) fn of<'a>(_: &Child, _: &'a Heir) -> Group<'a> {
            Group(PhantomData)
        }

        pub(in super::super) fn ended(self) {}
    }
}
