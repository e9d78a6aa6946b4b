//! `wasi:http` for guests: the one way out of the sandbox.
//!
//! A request is read ([`request`]), its origin compared with the grants, its host resolved once and every address
//! checked ([`address`]), the connection pinned to a checked one ([`connect`]), the secrets of that origin added, and the
//! response bounded and redacted on its way back ([`response`]). wasmtime's own client is left out of the build: no
//! request can leave by another path.
//!
//! The host follows no redirect, keeps no cookie and no connection, knows no proxy and no cache: each request is the
//! guest's own and is decided alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fief_core::event::CapabilityKind;
use fief_core::grant::{Grant, Limits, OriginGrant, SecretGrant};
use http::{HeaderName, Request, Response};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use wasmtime::component::Linker;
use wasmtime_wasi_http::{Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks, WasiHttpView};

use crate::audit::Audit;
use crate::secret::Vault;

mod address;
mod connect;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub(crate) use address::Network;

/// Links `wasi:http/types` and `wasi:http/outgoing-handler`, and nothing else.
pub(crate) fn add_to_linker<T: WasiHttpView + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}

/// What one call may send, and has sent.
#[derive(Clone)]
pub(crate) struct Egress {
    call: Arc<Call>,
}

struct Call {
    origins: Vec<OriginGrant>,
    secrets: Vec<SecretGrant>,
    limits: Limits,
    vault: Arc<Vault>,
    network: Arc<Network>,
    audit: Arc<Audit>,
    sent: AtomicU64,
    lookups: Semaphore,
}

/// How long a request may take, in its parts.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Duration,
    /// When all of it must be over.
    deadline: Instant,
}

impl Timeouts {
    /// What the guest asks for, within the call's wall clock. Without a wish 10 s to connect, which covers two lost
    /// packets of TCP's and a slow resolver.
    fn new(options: Option<RequestOptions>, limits: &Limits) -> Self {
        let options = options.unwrap_or_default();
        let within = |wish: Option<Duration>, default: Duration| {
            wish.unwrap_or(default)
                .clamp(Duration::from_millis(1), limits.wall.max(Duration::from_millis(1)))
        };
        Self {
            connect: within(options.connect_timeout, Duration::from_secs(10)),
            first_byte: within(options.first_byte_timeout, limits.wall),
            between_bytes: within(options.between_bytes_timeout, limits.wall),
            deadline: Instant::now() + limits.wall,
        }
    }
}

impl Egress {
    /// For one call under `grant`.
    pub(crate) fn new(grant: &Grant, vault: Arc<Vault>, network: Arc<Network>, audit: Arc<Audit>) -> Self {
        Self {
            call: Arc::new(Call {
                origins: grant.http.clone(),
                secrets: grant.secrets.clone(),
                limits: grant.limits,
                vault,
                network,
                audit,
                sent: AtomicU64::new(0),
                lookups: Semaphore::new(address::LOOKUPS_OF_A_CALL),
            }),
        }
    }

    /// Sends one request, or says why it must not leave.
    pub(crate) async fn send(
        &self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<Response<WasiBody>, Error> {
        let call = &*self.call;
        let timeouts = Timeouts::new(options, &call.limits);
        tokio::time::timeout_at(timeouts.deadline, call.send(request, timeouts))
            .await
            .unwrap_or(Err(Error::ConnectionReadTimeout))
    }
}

impl Call {
    async fn send(&self, request: Request<WasiBody>, timeouts: Timeouts) -> Result<Response<WasiBody>, Error> {
        let (parts, body) = request.into_parts();
        let target = request::target(&parts).map_err(|bad| {
            // What was given is no origin; the text may be anything, so it is quoted by the error alone.
            self.refuse(
                CapabilityKind::Http,
                &bad.to_string(),
                "only well-formed origins can be granted",
                &bad.to_string(),
            )
        })?;
        let origin = target.to_string();
        let grant = fief_core::grant::egress::decide(&self.origins, &target).map_err(|refusal| {
            self.refuse(
                CapabilityKind::Http,
                &refusal.target,
                &refusal.rule,
                &refusal.to_string(),
            )
        })?;
        let refuse =
            |reason: String| self.refuse(CapabilityKind::Http, &origin, &reason, &format!("`{origin}`: {reason}"));
        if self.sent.fetch_add(1, Ordering::Relaxed) >= self.limits.requests {
            return Err(refuse(format!(
                "limit: a call may send {} requests",
                self.limits.requests
            )));
        }
        let mut outgoing = request::Outgoing::new(&parts, &target, &self.limits).map_err(|refusal| match refusal {
            request::Unfit::Denied(reason) => refuse(reason),
            request::Unfit::Code(error) => error,
        })?;
        let secrets = self.add_secrets(&mut outgoing, &target, &origin)?;

        let connecting = async {
            let addresses = address::checked(&self.network, &self.lookups, grant, &target)
                .await
                .map_err(|error| match error {
                    address::Unreachable::Refused(refusal) => self.refuse(
                        CapabilityKind::Http,
                        &refusal.target,
                        &refusal.rule,
                        &refusal.to_string(),
                    ),
                    address::Unreachable::Dns(error) => error,
                })?;
            connect::connect(&self.network, &target, &addresses, timeouts.connect).await
        };
        let stream = tokio::time::timeout(timeouts.connect, connecting)
            .await
            .unwrap_or(Err(Error::ConnectionTimeout))?;

        self.audit.allowed(CapabilityKind::Http, &origin, &grant.rule);
        for secret in secrets {
            self.audit.allowed(
                CapabilityKind::Secret,
                &format!("{}@{origin}", secret.name),
                &secret.rule,
            );
        }
        let redactor = self.vault.redactor();
        let secret_sent = outgoing.secret_sent;
        let (request, failure) = outgoing.with_body(body, self.limits.request_bytes).await?;
        response::exchange(stream, request, failure, redactor, secret_sent, &self.limits, timeouts).await
    }

    /// Adds the secrets that are granted for this origin, in place of whatever the guest put into their headers.
    fn add_secrets(
        &self,
        outgoing: &mut request::Outgoing,
        target: &fief_core::grant::target::Target,
        origin: &str,
    ) -> Result<Vec<&SecretGrant>, Error> {
        let granted: Vec<&SecretGrant> = self
            .secrets
            .iter()
            .filter(|secret| secret.origin.matches(target))
            .collect();
        for secret in &granted {
            let added = match self.vault.get(&secret.name) {
                Ok(value) => outgoing.add_secret(secret, value),
                Err(error) => Err(error.to_string()),
            };
            added.map_err(|reason| {
                let target = format!("{}@{origin}", secret.name);
                self.refuse(
                    CapabilityKind::Secret,
                    &target,
                    &secret.rule,
                    &format!("`{origin}`: {reason}"),
                )
            })?;
        }
        Ok(granted)
    }

    /// Notes a refused use and makes the error that the guest sees. `internal-error` is the only code that carries a
    /// text, and the text is what a model can act on.
    fn refuse(&self, kind: CapabilityKind, target: &str, rule: &str, message: &str) -> Error {
        let redactor = self.vault.redactor();
        self.audit.refused(kind, &redactor.text(target), &redactor.text(rule));
        Error::InternalError(Some(format!("request denied: {}", redactor.text(message))))
    }
}

impl WasiHttpHooks for Egress {
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        request::is_forbidden(name)
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(request::is_forbidden)
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _body_result: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<
        dyn Future<Output = Result<(Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>>
            + Send,
    > {
        let egress = self.clone();
        Box::new(async move {
            let response = egress.send(request, options).await?;
            // The connection is driven by a task that the response's body owns, so nothing is left to drive here.
            let idle: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(async { Ok(()) });
            Ok((response, idle))
        })
    }
}
