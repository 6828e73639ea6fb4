//! The files of a service that speaks TLS: what is wrong with them is said, and what changes is read again.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr};
use tokio::time::timeout;

use crate::certificates::{Authority, Connect, Identity, Secured, shown};
use crate::eventually;
use crate::program::{delayline, signal, write};

#[tokio::test]
async fn a_changed_certificate_is_shown_to_new_connections_and_old_ones_live_on() {
    let secured = Secured::with(&[]).await;
    let mut old = secured.connect().await;
    assert_eq!(&shown(&old), secured.identity.der());
    let next = secured.authority.issue();
    next.write(secured.folder.path());
    eventually("the new certificate is shown", async || {
        (&shown(&secured.connect().await) == next.der()).then_some(())
    })
    .await;
    assert_eq!(old.ask("GET /healthz", "", "").await.status, 200);
    assert_eq!(&shown(&old), secured.identity.der());
}

#[cfg(unix)]
#[tokio::test]
async fn files_behind_links_are_changed_all_at_once_as_kubernetes_does() {
    use std::os::unix::fs::symlink;

    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let path = |name: &str| folder.path().join(name);
    let [first, second] = ["..first", "..second"].map(|name| {
        let identity = authority.issue();
        identity.write(&path(name));
        identity
    });
    symlink("..first", path("..data")).unwrap();
    for name in ["cert.pem", "key.pem"] {
        symlink(format!("..data/{name}"), path(name)).unwrap();
    }
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| path(name).display().to_string());
    let service = crate::service::Service::with(&["--tls-cert", &certificate, "--tls-key", &key]).await;
    assert_eq!(&shown(&authority.connect(&service).await), first.der());
    symlink("..second", path("..next")).unwrap();
    std::fs::rename(path("..next"), path("..data")).unwrap();
    eventually("the new certificate is shown", async || {
        (&shown(&authority.connect(&service).await) == second.der()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_with_what_is_wrong() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let (identity, other) = (authority.issue(), authority.issue());
    let [certificate, key] = identity.write(folder.path());
    let file = |name: &str, text: &str| write(folder.path(), name, text);
    let cut = identity.certificate.trim_end().trim_end_matches('-');
    let encrypted = identity.key.replace(" PRIVATE", " ENCRYPTED PRIVATE");
    let garbled = identity.key.replace("KEY-----\nM", "KEY-----\n!");
    let no_certificate = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let (certificate, key) = (certificate.as_str(), key.as_str());
    for (tls, names, says) in [
        (["/nonexistent/cert.pem", key, ""], "/nonexistent/cert.pem", "cannot read"),
        ([certificate, "/nonexistent/key.pem", ""], "/nonexistent/key.pem", "cannot read"),
        ([&file("empty.pem", ""), key, ""], "empty.pem", "no certificate"),
        ([key, key, ""], "key.pem", "a private key, but no certificate"),
        ([certificate, certificate, ""], "cert.pem", "a certificate, but no private key"),
        ([&file("cut.pem", cut), key, ""], "cut.pem", "stops in the middle"),
        ([&file("odd.pem", no_certificate), key, ""], "odd.pem", "cannot be used"),
        ([certificate, &file("encrypted.pem", &encrypted), ""], "encrypted.pem", "the key is encrypted"),
        ([certificate, &file("garbled.pem", &garbled), ""], "garbled.pem", "no base64"),
        (
            [certificate, &file("other.pem", &other.key), ""],
            "other.pem",
            "is not that of the first certificate",
        ),
        ([certificate, key, "/nonexistent/ca.pem"], "/nonexistent/ca.pem", "cannot read"),
        ([certificate, key, &file("no-ca.pem", "")], "no-ca.pem", "--client-ca"),
        ([certificate, key, &file("odd-ca.pem", no_certificate)], "odd-ca.pem", ""),
    ] {
        let mut arguments = vec!["--tls-cert", tls[0], "--tls-key", tls[1]];
        arguments.extend((!tls[2].is_empty()).then_some(["--client-ca", tls[2]]).into_iter().flatten());
        let refused = crate::service::bind(&arguments).await.err().unwrap_or_else(|| panic!("{tls:?}"));
        let said = refused.to_string();
        assert!(said.contains(names) && said.contains(says), "{said}");
        assert_eq!(refused.exit_code(), 2, "{said}");
        // No part of a key, whatever is wrong with it.
        let body = identity.key.lines().nth(1).unwrap();
        assert!(!said.contains(&body[1..20]), "{said}");
    }
}

/// `delayline serve` with TLS in a process of its own.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
    address: String,
}

impl Running {
    async fn start(folder: &Path, identity: &Identity) -> Running {
        let [certificate, key] = identity.write(folder);
        let words = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", &certificate, "--tls-key", &key];
        let mut child = delayline(None, &words);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut running = Running { child, lines, said: Vec::new(), address: String::new() };
        let line = running.says("listening on https://").await;
        let rest = line.split_once("https://").unwrap().1;
        rest.split_once(',').unwrap().0.clone_into(&mut running.address);
        running
    }

    async fn says(&mut self, text: &str) -> String {
        let reading = async {
            loop {
                let line = self.lines.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("it ended without {text:?}: {:?}", self.said));
                self.said.push(line.clone());
                if line.contains(text) {
                    break line;
                }
            }
        };
        let found = timeout(Duration::from_secs(40), reading).await;
        found.unwrap_or_else(|_| panic!("it does not say {text:?}: {:?}", self.said))
    }

    /// The certificate that a new connection is shown.
    async fn shows(&self, authority: &Authority, identity: &Identity) -> bool {
        let tcp = TcpStream::connect(&self.address).await.unwrap();
        &shown(&authority.client(None).over(tcp).await.unwrap()) == identity.der()
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_hangup_reads_the_files_again_even_if_they_look_as_before() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let first = authority.issue();
    let mut running = Running::start(folder.path(), &first).await;
    let same = |next: &Identity| {
        next.certificate.len() == first.certificate.len() && next.key.len() == first.key.len()
    };
    let next = std::iter::repeat_with(|| authority.issue()).take(10_000).find(same).unwrap();
    for (name, text) in [("cert.pem", &next.certificate), ("key.pem", &next.key)] {
        let path = folder.path().join(name);
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        // In its place: of the same length, and of the same time.
        std::fs::write(&path, text).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    }
    assert!(running.shows(&authority, &first).await);
    signal("-HUP", &running.child).await;
    // Two threads hear the signal, and either may speak first.
    for text in ["SIGHUP: certificates are read again", "new connections get the certificate that is in"] {
        if !running.said.iter().any(|line| line.contains(text)) {
            running.says(text).await;
        }
    }
    assert!(running.shows(&authority, &next).await);
}

#[tokio::test]
async fn a_broken_file_keeps_the_certificate_and_is_told_of_once() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let (first, next) = (authority.issue(), authority.issue());
    let mut running = Running::start(folder.path(), &first).await;
    let broken = write(folder.path(), "cert.pem", "no certificate");
    let line = running.says("ERROR").await;
    assert!(line.contains(&broken) && line.contains("from before"), "{line}");
    assert!(running.shows(&authority, &first).await);
    // The key alone: the pair is still broken, now otherwise, which is told of too, and nothing between.
    let path = folder.path().join("cert.pem");
    std::fs::write(&path, &next.certificate).unwrap();
    running.says("is not that of the first certificate").await;
    assert!(running.shows(&authority, &first).await);
    next.write(folder.path());
    running.says("new connections get the certificate").await;
    assert!(running.shows(&authority, &next).await);
    assert_eq!(running.said.iter().filter(|line| line.contains("ERROR")).count(), 2, "{:?}", running.said);
}

#[cfg(unix)]
#[tokio::test]
async fn a_key_that_everybody_may_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let identity = authority.issue();
    let [_, key] = identity.write(folder.path());
    for (mode, warns) in [(0o600, false), (0o640, false), (0o644, true)] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let running = Running::start(folder.path(), &identity).await;
        let has_warned = running.said.iter().any(|line| line.contains("may read the private key"));
        assert_eq!(has_warned, warns, "{mode:o}: {:?}", running.said);
    }
}

#[tokio::test]
async fn half_of_tls_is_an_error_wherever_it_is_said() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue().write(folder.path());
    for (file, words, says) in [
        ("", &["--tls-cert", "cert.pem"][..], "--tls-cert needs --tls-key"),
        ("", &["--tls-key", "key.pem"], "--tls-key needs --tls-cert"),
        ("", &["--client-ca", "cert.pem"], "--client-ca needs --tls-cert"),
        ("tls_cert = 'cert.pem'", &[], "--tls-cert needs --tls-key"),
        ("tls_key = 'key.pem'", &["--client-ca", "cert.pem"], "--tls-key needs --tls-cert"),
    ] {
        write(folder.path(), "delayline.toml", &format!("[serve]\n{file}\n"));
        let mut command = delayline(None, &[&["serve", "--listen", "127.0.0.1:0"], words].concat());
        let output = command.current_dir(folder.path()).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(says), "{output:?}");
    }
    write(folder.path(), "delayline.toml", "[serve]\ntls_cert = 'cert.pem'\n");
    let words = ["serve", "--listen", "127.0.0.1:0", "--tls-key", "key.pem"];
    let mut command = delayline(None, &words);
    command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut is_heard = async |text: &str| loop {
        let line = lines.next_line().await.unwrap().expect("it ended");
        if line.contains(text) {
            break;
        }
    };
    timeout(Duration::from_secs(40), is_heard("listening on https://")).await.expect("it speaks no TLS");
}
