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

    /// Reads which groups begin and end, a line each, and at the end kills those that run: a pipe ends however its writer
    /// does, by SIGKILL too. `PR_SET_PDEATHSIG` is for one process, not for those that it started, and for Linux.
    const LAST_WILL: &str = "trap '' HUP INT TERM USR1 USR2 PIPE; groups=; while read -r what group; do \
                             left=; for other in $groups; do test \"$other\" = \"$group\" || left=\"$left $other\"; done; \
                             if test \"$what\" = begins; then left=\"$left $group\"; fi; groups=$left; done; \
                             for group in $groups; do kill -s KILL -- \"-$group\"; done";

    /// A process that outlives this one, and then kills the commands that it was running.
    pub(in super::super) struct Heir(Mutex<ChildStdin>);

    impl Heir {
        pub(in super::super) fn appoint() -> io::Result<Heir> {
            let mut heir = Command::new("sh");
            heir.args(["-c", LAST_WILL]).process_group(0);
            let mut heir = heir.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            let ear = heir.stdin.take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(Heir(Mutex::new(ear)))
        }

        fn tell(&self, what: &str, group: Pid) {
            let line = format!("{what} {}\n", group.as_raw_nonzero());
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
        has_ended: bool,
        heir: &'a Heir,
    }

    impl Group<'_> {
        pub(in super::super) fn of<'a>(leader: &Child, heir: &'a Heir) -> Group<'a> {
            let id = leader.id().and_then(|id| i32::try_from(id).ok());
            let leader = id.and_then(Pid::from_raw);
            if let Some(leader) = leader {
                heir.tell("begins", leader);
            }
            Group { leader, has_ended: false, heir }
        }

        pub(in super::super) fn ended(mut self) {
            self.has_ended = true;
        }
    }

    impl Drop for Group<'_> {
        fn drop(&mut self) {
            let Some(leader) = self.leader else { return };
            if !self.has_ended {
                let _ = kill_process_group(leader, Signal::KILL);
            }
            self.heir.tell("ends", leader);
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
