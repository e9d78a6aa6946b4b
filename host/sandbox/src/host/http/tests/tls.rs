#![allow(clippy::unwrap_used)]

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::host::http::connect::connector;

/// A certificate for `secure.example` alone, signed by itself; valid for a hundred years from 2026.
const CERTIFICATE: &[u8] = include_bytes!("secure.example.cert.der");
const KEY: &[u8] = include_bytes!("secure.example.key.der");

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A TLS server that answers with the name that it was asked for and the protocol that was agreed on.
async fn server() -> (u16, tokio::task::JoinHandle<()>) {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(CERTIFICATE)],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY)),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let session = stream.get_ref().1;
            let protocol = String::from_utf8_lossy(session.alpn_protocol().unwrap_or_default()).into_owned();
            let body = format!("{} {protocol}", session.server_name().unwrap_or("none"));
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, task)
}

/// Any name resolves to loopback; trusted is the certificate above, or what the platform trusts.
fn setup(origin: &str, trusted: bool) -> Setup {
    let mut setup = Setup::new(&[origin]).private();
    let network = Network::with_resolver(Answers::new(&[&["127.0.0.1"]]));
    if trusted {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(CERTIFICATE)).unwrap();
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        assert!(network.tls.set(Ok(connector(config))).is_ok());
    }
    setup.network = Arc::new(network);
    setup
}

#[tokio::test]
async fn the_certificate_must_be_for_the_name_and_the_name_is_asked_for() {
    let (port, task) = server().await;
    let origin = format!("https://secure.example:{port}");
    let answer = setup(&origin, true).get(&format!("{origin}/")).await.unwrap();
    assert_eq!(answer.body, "secure.example http/1.1");
    for other in [
        format!("https://other.example:{port}"),
        format!("https://127.0.0.1:{port}"),
    ] {
        let error = setup(&other, true).get(&format!("{other}/")).await.unwrap_err();
        assert!(matches!(error, Error::TlsCertificateError), "{error:?}");
    }
    task.abort();
}

#[tokio::test]
async fn a_certificate_that_the_platform_does_not_know_is_refused() {
    let (port, task) = server().await;
    let origin = format!("https://secure.example:{port}");
    let error = setup(&origin, false).get(&format!("{origin}/")).await.unwrap_err();
    // A machine without any roots says so instead.
    let refused = matches!(error, Error::TlsCertificateError) || error.to_string().contains("no TLS on this machine");
    assert!(refused, "{error:?}");
    task.abort();
}

#[tokio::test]
async fn https_to_a_plain_server_is_a_tls_error() {
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = plain.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let origin = format!("https://secure.example:{port}");
    let error = setup(&origin, true).get(&format!("{origin}/")).await.unwrap_err();
    assert!(matches!(error, Error::TlsProtocolError), "{error:?}");
    task.abort();
}
