//! A connection to one of the checked addresses, plain or by TLS. No name is resolved here and no proxy is asked.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fief_core::grant::pattern::Scheme;
use fief_core::grant::target::{Host, Target};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::Error;

use super::address::Network;

/// How many addresses of one name are tried, one after the other.
const ATTEMPTS: usize = 6;

/// A connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// TLS by rustls with the platform's roots.
pub(super) fn platform_tls() -> Result<TlsConnector, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| error.to_string())?
        .with_no_client_auth();
    Ok(connector(config))
}

pub(super) fn connector(mut config: ClientConfig) -> TlsConnector {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Connects to the first of `addresses` that answers, and for https proves that it is the target.
pub(super) async fn connect(
    network: &Network,
    target: &Target,
    addresses: &[SocketAddr],
    timeout: Duration,
) -> Result<Box<dyn Stream>, Error> {
    let stream = first(addresses, timeout).await?;
    // A request is written in few pieces, and waiting to join them only costs time; a socket that refuses still works.
    let _ = stream.set_nodelay(true);
    match target.scheme {
        Scheme::Http => Ok(Box::new(stream)),
        Scheme::Https => {
            let tls = network
                .tls()
                .map_err(|reason| Error::InternalError(Some(format!("no TLS on this machine: {reason}"))))?;
            let stream = tls
                .connect(server_name(target)?, stream)
                .await
                .map_err(|error| tls_error(&error))?;
            Ok(Box::new(stream))
        }
    }
}

async fn first(addresses: &[SocketAddr], timeout: Duration) -> Result<TcpStream, Error> {
    let deadline = Instant::now() + timeout;
    let mut failure = Error::DestinationUnavailable;
    let attempts = addresses.len().min(ATTEMPTS);
    for (index, address) in addresses[..attempts].iter().enumerate() {
        // An address that swallows packets leaves the others their share of the time.
        let left = u32::try_from(attempts - index).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        failure = match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => match error.kind() {
                io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
                io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Error::DestinationIpUnroutable,
                _ => Error::DestinationUnavailable,
            },
            Err(_) => Error::ConnectionTimeout,
        };
    }
    Err(failure)
}

/// The name that the certificate must be for: the target's host, whatever address it was found at.
fn server_name(target: &Target) -> Result<ServerName<'static>, Error> {
    match &target.host {
        Host::Address(address) => Ok(ServerName::from(*address)),
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| Error::TlsCertificateError),
    }
}

fn tls_error(error: &io::Error) -> Error {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => Error::TlsCertificateError,
        Some(rustls::Error::AlertReceived(alert)) => Error::TlsAlertReceived {
            alert_id: Some(u8::from(*alert)),
            alert_message: Some(format!("{alert:?}")),
        },
        _ => Error::TlsProtocolError,
    }
}
