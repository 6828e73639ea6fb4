use std::process::Command;
use std::time::Duration;

use delayline_tokio::redis::{self, TlsCertificates};
use delayline_tokio::{Client, Error};

use crate::server::{Server, free_port};

#[tokio::test]
async fn a_server_is_spoken_to_over_tls_and_only_if_it_is_who_it_says() {
    let dir = std::env::temp_dir().join(format!("delayline-tls-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = |name: &str| dir.join(name).display().to_string();
    let (key, cert) = (file("key.pem"), file("cert.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &key, "-out", &cert])
        .output()
        .unwrap_or_else(|error| {
            panic!("this test needs openssl on the PATH ({error}): apt-get install openssl")
        });
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let port = free_port().to_string();
    let options = ["--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key];
    let server = Server::with(&[&options[..], &["--tls-auth-clients", "no"]].concat());
    let url = format!("rediss://localhost:{port}/");
    let root_cert = Some(std::fs::read(&cert).unwrap());
    let own = redis::Client::build_with_tls(url.as_str(), TlsCertificates { client_tls: None, root_cert });
    let client = Client::from_redis(own.unwrap()).await.unwrap();
    assert_eq!(client.address(), format!("{url}0"));
    let queue = client.bytes("orders").unwrap();
    queue.publish_bytes("x").delay(Duration::from_millis(100)).await.unwrap();
    assert_eq!(queue.take().wait(Duration::from_secs(20)).await.unwrap().len(), 1);

    let builder = Client::builder().connect_timeout(Duration::from_secs(1));
    let stranger = builder.connect(&url).await.unwrap_err();
    assert!(matches!(&stranger, Error::Unreachable { why, .. } if why.contains("ertificate")), "{stranger}");
    drop(server);
    std::fs::remove_dir_all(&dir).unwrap();
}
