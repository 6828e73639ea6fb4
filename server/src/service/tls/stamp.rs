use std::path::Path;
use std::time::SystemTime;

/// By what a changed file is told from the one that was read; none for a file that is not there. A link is followed: another
/// one in its place leads to another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(Option<Found>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    length: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: (u64, u64),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Stamp {
        let found = std::fs::metadata(path).map(|found| Found {
            length: found.len(),
            modified: found.modified().ok(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                (found.dev(), found.ino())
            },
        });
        Stamp(found.ok())
    }
}

/// Says so if every user of this machine may read the key.
#[cfg(unix)]
pub(super) fn warn_of_readers(key: &Path) {
    use std::os::unix::fs::PermissionsExt;

    if std::fs::metadata(key).is_ok_and(|found| found.permissions().mode() & 0o004 != 0) {
        let key = key.display();
        tracing::warn!("every user of this machine may read the private key {key}: chmod 600 {key}");
    }
}

#[cfg(not(unix))]
pub(super) fn warn_of_readers(_: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn what_comes_in_a_files_place_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let (one, two, link) = (path("one"), path("two"), path("link"));
        assert_eq!(Stamp::of(&link), Stamp::of(&one));
        std::fs::write(&one, "a").unwrap();
        std::fs::write(&two, "b").unwrap();
        let modified = std::fs::metadata(&one).unwrap().modified().unwrap();
        std::fs::File::options().write(true).open(&two).unwrap().set_modified(modified).unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let before = Stamp::of(&link);
        assert_eq!(before, Stamp::of(&one));
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&two, &link).unwrap();
        assert_ne!(before, Stamp::of(&link), "of the same length and time");
        std::fs::write(&one, "ab").unwrap();
        assert_ne!(before, Stamp::of(&one));
    }
}
