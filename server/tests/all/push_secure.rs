use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::program::write;
use crate::receiver::ALLOW;
use crate::service::{Service, text};

/// A receiver with TLS, whose certificate is of its own authority.
struct Secure {
    address: SocketAddr,
    folder: TempDir,
    versions: Arc<Mutex<Vec<Version>>>,
    connections: Arc<AtomicUsize>,
}

impl Secure {
    async fn start(protocols: &[&[u8]]) -> Secure {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "ca.pem", &made.cert.pem());
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config =
            config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (versions, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (seen, count) = (Arc::clone(&versions), Arc::clone(&connections));
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(config));
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (acceptor, seen, count) = (acceptor.clone(), Arc::clone(&seen), Arc::clone(&count));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    count.fetch_add(1, Ordering::Relaxed);
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let answer = service_fn(move |request: Request<Incoming>| {
                        seen.lock().unwrap().push(request.version());
                        async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok")))) }
                    });
                    let stream = TokioIo::new(stream);
                    let _ = if is_http2 {
                        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        server.serve_connection(stream, answer).await
                    } else {
                        hyper::server::conn::http1::Builder::new().serve_connection(stream, answer).await
                    };
                });
            }
        });
        Secure { address, folder, versions, connections }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/jobs", self.address.port())
    }

    fn authority(&self) -> String {
        self.folder.path().join("ca.pem").display().to_string()
    }
}

#[tokio::test]
async fn a_target_with_tls_is_spoken_to_by_http2_where_it_offers_that() {
    for (protocols, version, connections) in [
        (&[&b"h2"[..], b"http/1.1"][..], Version::HTTP_2, 1..=20),
        (&[b"http/1.1"], Version::HTTP_11, 1..=20),
        (&[], Version::HTTP_11, 1..=20),
    ] {
        let target = Secure::start(protocols).await;
        let service = Service::with(&[&ALLOW[..], &["--push-ca", &target.authority()]].concat()).await;
        service.pushes("q", json!({ "url": target.url(), "concurrency": 20 }), json!({})).await;
        for id in 0..50 {
            service.publish("q", &format!("job-{id}")).await;
        }
        service.counts("q", "acked", 50).await;
        let versions = target.versions.lock().unwrap().clone();
        assert!(versions.iter().all(|seen| *seen == version) && versions.len() == 50, "{versions:?}");
        let made = target.connections.load(Ordering::Relaxed);
        assert!(connections.contains(&made), "{made} connections");
        service.stop().await;
    }
}

#[tokio::test]
async fn a_target_whose_certificate_nobody_vouches_for_gets_nothing() {
    let target = Secure::start(&[]).await;
    let service = Service::with(&ALLOW).await;
    let strict = json!({ "attempts": 1 });
    service.pushes("q", json!({ "url": target.url() }), strict.clone()).await;
    service.publish("q", "a").await;
    let reason = text(&service.dead("q", 1).await[0]["reason"]);
    assert!(reason.contains("the push did not arrive: invalid peer certificate"), "{reason}");
    service.stop().await;
    let service = Service::with(&[&ALLOW[..], &["--push-ca", &target.authority()]].concat()).await;
    let by_address = format!("https://127.0.0.1:{}/jobs", target.address.port());
    service.pushes("q", json!({ "url": by_address }), strict).await;
    service.publish("q", "a").await;
    let reason = text(&service.dead("q", 1).await[0]["reason"]);
    assert!(reason.contains("invalid peer certificate"), "{reason}");
    assert!(target.versions.lock().unwrap().is_empty());
    service.stop().await;
}
