//! The service at a Unix socket.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::program::clean;
use crate::raw::Raw;
use crate::service::{Service, bind};

const TAKE: &str =
    "POST /v1/take?queue=q&wait=5m&lease=1h HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";

/// Where a test's socket is.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
    /// As it is said.
    listen: String,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("delayline.sock");
        let listen = format!("unix:{}", path.display());
        Place { _folder: folder, path, listen }
    }

    async fn serve(&self, arguments: &[&str]) -> Service {
        Service::with(&[&["--listen", &self.listen], arguments].concat()).await
    }

    async fn connect(&self) -> Raw<UnixStream> {
        Raw(UnixStream::connect(&self.path).await.unwrap())
    }

    fn mode(&self) -> u32 {
        let found = std::fs::symlink_metadata(&self.path).unwrap();
        assert!(found.file_type().is_socket());
        found.permissions().mode() & 0o777
    }

    async fn publish(&self, id: &str) {
        let came = self.connect().await.ask(&format!("POST /v1/queues/q/jobs?id={id}"), "", "1").await;
        assert_eq!(came.status, 201, "{came:?}");
    }
}

#[tokio::test]
async fn it_answers_at_a_socket_that_only_its_user_may_use_and_takes_it_away() {
    let place = Place::new();
    let service = place.serve(&[]).await;
    assert_eq!(place.mode(), 0o600);
    let mut curl = clean("curl");
    curl.args(["-sS", "--unix-socket"]).arg(&place.path).arg("http://delayline/healthz");
    assert_eq!(String::from_utf8_lossy(&curl.output().await.unwrap().stdout), "ok\n");
    let mut raw = place.connect().await;
    assert_eq!(raw.ask("POST /v1/queues/q/jobs", "", "1").await.status, 201);
    assert_eq!(raw.ask("POST /v1/take?queue=q", "", "").await.status, 200);
    service.stop().await;
    assert!(raw.is_closed().await && !place.path.exists());
    let left = std::fs::read_dir(place.path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn its_mode_is_what_is_said() {
    let place = Place::new();
    let _service = place.serve(&["--unix-mode", "660"]).await;
    assert_eq!(place.mode(), 0o660);
}

#[tokio::test]
async fn a_socket_that_a_dead_process_left_is_replaced_and_a_living_one_is_not() {
    let place = Place::new();
    drop(std::os::unix::net::UnixListener::bind(&place.path).unwrap());
    let service = place.serve(&[]).await;
    assert_eq!(place.connect().await.ask("GET /healthz", "", "").await.status, 200);
    let refused = bind(&["--listen", &place.listen]).await.err().unwrap();
    assert!(refused.to_string().contains("a process listens there"), "{refused}");
    assert_eq!(place.connect().await.ask("GET /healthz", "", "").await.status, 200);
    service.stop().await;
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let place = Place::new();
    std::fs::write(&place.path, "precious").unwrap();
    let refused = bind(&["--listen", &place.listen]).await.err().unwrap();
    assert!(refused.to_string().contains("no socket"), "{refused}");
    assert_eq!(std::fs::read_to_string(&place.path).unwrap(), "precious");
    let nowhere = bind(&["--listen", "unix:/nonexistent/folder/s"]).await.err().unwrap();
    assert!(nowhere.to_string().contains("unix:/nonexistent/folder/s"), "{nowhere}");
}

#[tokio::test]
async fn a_socket_that_another_has_put_in_its_place_is_left_alone() {
    let place = Place::new();
    let service = place.serve(&[]).await;
    std::fs::remove_file(&place.path).unwrap();
    let _other = std::os::unix::net::UnixListener::bind(&place.path).unwrap();
    service.stop().await;
    assert!(place.path.exists());
}

#[tokio::test]
async fn any_host_is_right_there_but_a_page_of_another_site_is_not() {
    let place = Place::new();
    let _service = place.serve(&[]).await;
    for host in ["Host: evil.example\r\n", "Host: 10.1.2.3\r\n", ""] {
        let mut raw = place.connect().await;
        raw.write(format!("GET /healthz HTTP/1.1\r\n{host}\r\n")).await;
        assert_eq!(raw.answer().await.status, 200, "{host:?}");
    }
    // As a proxy passes it on.
    for (headers, status) in [
        ("Host: queue.example\r\nOrigin: https://queue.example\r\n", 201),
        ("Host: queue.example\r\nOrigin: https://evil.example\r\n", 403),
        ("Origin: https://evil.example\r\n", 403),
        ("Host: queue.example\r\nSec-Fetch-Site: cross-site\r\n", 403),
    ] {
        let mut raw = place.connect().await;
        let head = format!("POST /v1/queues/q/jobs HTTP/1.1\r\n{headers}Content-Length: 1\r\n\r\n1");
        raw.write(head).await;
        assert_eq!(raw.answer().await.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn a_socket_and_addresses_are_served_together() {
    let place = Place::new();
    let listen = format!("127.0.0.1:0,{}", place.listen);
    let service = Service::with(&["--listen", &listen]).await;
    service.publish("q", "a").await;
    let came = place.connect().await.ask("POST /v1/take?queue=q", "", "").await;
    assert_eq!(came.json["jobs"][0]["id"], "a", "{came:?}");
    let mut raw = place.connect().await;
    raw.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(raw.answer().await.status, 200);
    let mut tcp = Raw::connect(&service).await;
    tcp.write("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n").await;
    tcp.answer().await.is_problem(421, "wrong_host");
    service.stop().await;
    assert!(raw.is_closed().await && !place.path.exists());
}

#[tokio::test]
async fn all_clients_of_a_socket_are_one() {
    let place = Place::new();
    let _service = place.serve(&["--max-takes-per-client", "1"]).await;
    let mut waits = place.connect().await;
    waits.write(TAKE).await;
    crate::eventually("a second take is refused", async || {
        let came = place.connect().await.ask("POST /v1/take?queue=q&wait=1ms", "", "").await;
        (came.status == 429).then(|| came.is_problem(429, "too_many_takes"))
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_costs_its_job_nothing() {
    let place = Place::new();
    let _service = place.serve(&[]).await;
    for n in 0..10 {
        let mut raw = place.connect().await;
        raw.write(TAKE.repeat(1 + n % 2)).await;
        assert_eq!(place.connect().await.ask("GET /healthz", "", "").await.status, 200);
        raw.0.shutdown().await.unwrap();
        assert_eq!(place.connect().await.ask("GET /healthz", "", "").await.status, 200);
        place.publish(&format!("job-{n}")).await;
        let came = place.connect().await.ask("POST /v1/take?queue=q&wait=15s", "", "").await;
        let job = &came.json["jobs"][0];
        assert_eq!((&job["id"], &job["attempt"]), (&format!("job-{n}").into(), &1.into()), "{came:?}");
    }
}

#[tokio::test]
async fn a_mode_is_octal() {
    for wrong in ["8", "rw", "7777", "-1"] {
        let words = ["serve", "--listen", "unix:s", "--unix-mode", wrong];
        let output = crate::program::delayline(None, &words).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}: {output:?}");
    }
}
