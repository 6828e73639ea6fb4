use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::UnixListener;

/// The file by which clients find a Unix socket; removed when this is dropped, unless another has taken its place.
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Listens on a Unix socket that has this mode. A file that a process has left which listens no more is replaced.
pub(super) fn listen(path: &Path, mode: u32, backlog: i32) -> io::Result<(UnixListener, SocketFile)> {
    is_free(path)?;
    // Nobody finds it before it has its mode and listens: it gets its name last.
    let unnamed = beside(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    let listening = bind(&socket, &unnamed, mode, backlog)
        .and_then(|()| SocketFile::of(&unnamed, path))
        .and_then(|file| fs::rename(&unnamed, path).map(|()| file));
    match listening {
        Ok(file) => {
            let listener = std::os::unix::net::UnixListener::from(OwnedFd::from(socket));
            Ok((UnixListener::from_std(listener)?, file))
        }
        Err(error) => {
            let _ = fs::remove_file(&unnamed);
            Err(error)
        }
    }
}

fn bind(socket: &Socket, path: &Path, mode: u32, backlog: i32) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(backlog)
}

/// A path in the same folder that no other process uses.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let mut name = path.file_name().ok_or_else(no_file)?.to_owned();
    name.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(name))
}

/// Whether nobody listens there, and nothing else would be lost.
fn is_free(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"))
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "a process listens there")),
        },
    }
}

impl SocketFile {
    /// The file that is at `made`, and will be at `path`.
    fn of(made: &Path, path: &Path) -> io::Result<SocketFile> {
        let made = fs::symlink_metadata(made)?;
        Ok(SocketFile { path: path.to_owned(), device: made.dev(), inode: made.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == (self.device, self.inode);
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
