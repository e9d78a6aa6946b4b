//! From a host's name to addresses that a connection may go to: resolved once, every one checked.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};

use fief_core::grant::OriginGrant;
use fief_core::grant::egress::{Refusal, check_address};
use fief_core::grant::target::{Host, Target};
use fief_core::port::BoxFuture;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::Error;

use super::connect;

/// Lookups at once, of all calls: each occupies a thread until the system's resolver gives up, also when the call that
/// asked is long over.
const LOOKUPS: usize = 64;
/// Lookups at once of one call, so that a guest whose names lead to silent servers leaves the others theirs.
pub(super) const LOOKUPS_OF_A_CALL: usize = 4;

/// Turns names into addresses.
pub(crate) trait Resolve: Send + Sync {
    /// All addresses of one name.
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// What all calls share: the resolver and the roots of trust.
pub(crate) struct Network {
    pub(super) resolver: Box<dyn Resolve>,
    /// Read at the first use of TLS: a host without certificates can still send plain requests.
    pub(super) tls: OnceLock<Result<TlsConnector, String>>,
}

impl Network {
    /// The system's resolver and the platform's roots.
    pub(crate) fn new() -> Self {
        Self::with_resolver(SystemResolver {
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        })
    }

    pub(super) fn with_resolver(resolver: impl Resolve + 'static) -> Self {
        Self {
            resolver: Box::new(resolver),
            tls: OnceLock::new(),
        }
    }

    pub(super) fn tls(&self) -> Result<TlsConnector, String> {
        self.tls.get_or_init(connect::platform_tls).clone()
    }
}

struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let lookups = self.lookups.clone();
        let name = name.to_owned();
        Box::pin(async move {
            let permit = lookups.acquire_owned().await.map_err(io::Error::other)?;
            let lookup = tokio::task::spawn_blocking(move || {
                // Moved in here, so that the thread counts until it is free, whoever still waits for it.
                let _permit = permit;
                (name.as_str(), 0)
                    .to_socket_addrs()
                    .map(|found| found.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// Why there is no address to connect to.
pub(super) enum Unreachable {
    /// One of them must not be reached. What the others are does not matter: a name that mixes them is a trick.
    Refused(Refusal),
    /// The name leads nowhere.
    Dns(Error),
}

/// The addresses of `target`, all of them such that `grant` lets a connection go there.
pub(super) async fn checked(
    network: &Network,
    lookups: &Semaphore,
    grant: &OriginGrant,
    target: &Target,
) -> Result<Vec<SocketAddr>, Unreachable> {
    let addresses = match &target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            let _turn = lookups.acquire().await;
            network.resolver.resolve(name).await.map_err(|error| {
                Unreachable::Dns(Error::DnsError {
                    rcode: Some(error.to_string()),
                    info_code: None,
                })
            })?
        }
    };
    if addresses.is_empty() {
        return Err(Unreachable::Dns(Error::DnsError {
            rcode: Some("the name has no address".into()),
            info_code: None,
        }));
    }
    for address in &addresses {
        check_address(grant, target, *address).map_err(Unreachable::Refused)?;
    }
    Ok(addresses
        .into_iter()
        .map(|address| SocketAddr::new(address.to_canonical(), target.port))
        .collect())
}
