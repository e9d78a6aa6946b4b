//! Origins and secrets.

use super::{AS_POLICY, BadGrant, Draft, Kind};
use crate::grant::address::{AddressClass, address_class};
use crate::grant::pattern::{HostPattern, OriginPattern};
use crate::grant::policy::{PolicyOrigin, PolicySecret};
use crate::grant::{OriginGrant, SecretGrant};
use crate::manifest::archetype::{GrantRequest, OriginRequest, SecretRequest};
use crate::manifest::plugin::NeededSecret;

/// The header that carries a secret where nobody says otherwise.
const HEADER: &str = "authorization";
/// Its value.
const FORMAT: &str = "Bearer {}";

impl PolicyOrigin {
    /// Whether policy lets the origin's address be off the open internet.
    fn reaches_private(&self) -> bool {
        self.private || self.pattern.is_explicit()
    }

    /// Whether policy names a metadata address itself.
    fn names_metadata(&self) -> bool {
        self.pattern
            .literal()
            .is_some_and(|address| address_class(address) == AddressClass::Metadata)
    }
}

impl Draft<'_> {
    pub(super) fn http(&mut self) -> Result<(), BadGrant> {
        let mut needs = Vec::new();
        for need in &self.plugin.needs.http {
            needs.push(self.needed_origin(&need.0, "http")?);
        }
        match self.request {
            GrantRequest::Policy => self.http_as_policy(&needs),
            GrantRequest::Exact(table) => {
                for request in &table.http {
                    self.http_exactly(&needs, request)?;
                }
                if !needs.is_empty() && !self.out.wanted.http {
                    for need in &needs {
                        self.out.unmet.push(format!("http `{need}`"));
                        self.reach(Kind::Http, need, [Some(need.to_string()), None, None, None]);
                    }
                }
            }
        }
        prune(&mut self.out.grant.http);
        Ok(())
    }

    fn http_as_policy(&mut self, needs: &[OriginPattern]) {
        self.out.wanted.http = !needs.is_empty();
        let policy = self.policy;
        for need in needs {
            let mut met = false;
            for allowed in &policy.net {
                let Some(pattern) = need.intersect(&allowed.pattern) else {
                    continue;
                };
                let grant = OriginGrant {
                    private: allowed.reaches_private(),
                    metadata: allowed.names_metadata(),
                    rule: self.rule(&allowed.rule),
                    pattern,
                };
                met |= self.origin_granted(&grant.pattern.to_string(), need, AS_POLICY, allowed, &grant);
            }
            if !met {
                self.reach(
                    Kind::Http,
                    need,
                    [Some(need.to_string()), Some(AS_POLICY.into()), None, None],
                );
            }
        }
    }

    fn http_exactly(&mut self, needs: &[OriginPattern], request: &OriginRequest) -> Result<(), BadGrant> {
        let granted = self.origin(&request.origin, "http")?;
        let policy = self.policy;
        let wants_private = request.private || granted.is_explicit();
        let mut needed = false;
        for need in needs {
            let Some(wanted) = need.intersect(&granted) else {
                continue;
            };
            needed = true;
            let before = self.out.grant.http.len();
            for allowed in &policy.net {
                let Some(pattern) = wanted.intersect(&allowed.pattern) else {
                    continue;
                };
                let grant = OriginGrant {
                    private: wants_private && allowed.reaches_private(),
                    metadata: allowed.names_metadata(),
                    rule: self.rule(&allowed.rule),
                    pattern,
                };
                self.origin_granted(&request.origin, need, &granted.to_string(), allowed, &grant);
            }
            let pieces = self.out.grant.http[before..].to_vec();
            self.http_taken(need, &wanted, wants_private, &pieces);
        }
        if needed {
            self.out.wanted.http = true;
        } else {
            self.in_vain(Kind::Http, &format!("http `{granted}`"), &granted.to_string());
        }
        Ok(())
    }

    /// Adds one origin, unless nothing could ever be reached under it. Whether it was added.
    fn origin_granted(
        &mut self,
        target: &str,
        need: &OriginPattern,
        archetype: &str,
        allowed: &PolicyOrigin,
        grant: &OriginGrant,
    ) -> bool {
        let void = is_void(grant);
        let effective = (!void).then(|| grant.pattern.to_string());
        let row = [
            Some(need.to_string()),
            Some(archetype.to_owned()),
            Some(allowed.rule.to_string()),
            effective,
        ];
        self.reach(Kind::Http, target, row);
        if !void {
            self.out.grant.http.push(grant.clone());
        }
        !void
    }

    /// Names what of `wanted` policy left no piece of.
    fn http_taken(&mut self, need: &OriginPattern, wanted: &OriginPattern, private: bool, pieces: &[OriginGrant]) {
        let flag = format!("--allow-net {wanted}");
        if pieces.is_empty() {
            self.reach(
                Kind::Http,
                wanted,
                [Some(need.to_string()), Some(wanted.to_string()), None, None],
            );
            self.taken(Kind::Http, wanted, "policy does not allow it", flag);
        } else if !pieces.iter().any(|piece| piece.pattern == *wanted) {
            let left: Vec<String> = pieces.iter().map(|piece| format!("`{}`", piece.pattern)).collect();
            self.taken(
                Kind::Http,
                wanted,
                format!("policy allows only {}", left.join(", ")),
                flag,
            );
        } else if private && !pieces.iter().any(|piece| piece.private || piece.metadata) {
            // A literal address on the open internet needs nobody's leave to be where it is.
            if wanted
                .literal()
                .is_some_and(|address| address_class(address) == AddressClass::Public)
            {
                return;
            }
            let (flag, why) = if wanted.is_explicit() {
                (flag, "policy does not name this address itself")
            } else {
                let table = format!("[policy] net = [{{ origin = \"{wanted}\", private = true }}]");
                (table, "policy does not let it resolve to private addresses")
            };
            self.taken(Kind::Http, wanted, why, flag);
        }
    }

    pub(super) fn secrets(&mut self) -> Result<(), BadGrant> {
        let mut needs = Vec::new();
        for need in &self.plugin.needs.secrets {
            needs.push((need, self.needed_origin(&need.origin, "secrets")?));
        }
        let mut granted = Vec::new();
        match self.request {
            GrantRequest::Policy => {
                for (need, origin) in &needs {
                    granted.push((
                        SecretRequest {
                            name: need.name.clone(),
                            origin: need.origin.clone(),
                            header: None,
                            format: None,
                        },
                        origin.clone(),
                    ));
                }
            }
            GrantRequest::Exact(table) => {
                for request in &table.secrets {
                    granted.push((request.clone(), self.origin(&request.origin, "secrets")?));
                }
                for (need, origin) in &needs {
                    if !granted.iter().any(|(request, _)| request.name == need.name) {
                        self.out.unmet.push(format!("secret `{}@{origin}`", need.name));
                    }
                }
            }
        }
        for (request, origin) in &granted {
            self.secret(&needs, request, origin);
        }
        self.unreachable_secrets();
        Ok(())
    }

    fn secret(&mut self, needs: &[(&NeededSecret, OriginPattern)], request: &SecretRequest, granted: &OriginPattern) {
        let shown = format!("{}@{granted}", request.name);
        let as_policy = matches!(self.request, GrantRequest::Policy);
        let archetype = if as_policy { AS_POLICY.to_owned() } else { shown.clone() };
        let policy = self.policy;
        let mut needed = false;
        for (need, origin) in needs.iter().filter(|(need, _)| need.name == request.name) {
            let Some(wanted) = origin.intersect(granted) else {
                continue;
            };
            needed = true;
            let asked = format!("{}@{origin}", need.name);
            let mut left = Vec::new();
            for allowed in policy.secrets.iter().filter(|allowed| allowed.name == request.name) {
                let Some(origin) = wanted.intersect(&allowed.origin) else {
                    continue;
                };
                let effective = Some(format!("{}@{origin}", request.name));
                let rule = Some(allowed.rule.to_string());
                self.reach(
                    Kind::Secret,
                    &shown,
                    [Some(asked.clone()), Some(archetype.clone()), rule, effective],
                );
                left.push(origin.clone());
                let grant = self.secret_grant(request, need, origin, allowed);
                if !self.out.grant.secrets.contains(&grant) {
                    self.out.grant.secrets.push(grant);
                }
            }
            if left.is_empty() {
                self.reach(Kind::Secret, &shown, [Some(asked), Some(archetype.clone()), None, None]);
            }
            if !as_policy && !left.contains(&wanted) {
                let flag = format!("--allow-secret {}@{wanted}", request.name);
                self.taken(Kind::Secret, &shown, "policy does not allow all of it", flag);
            }
        }
        if !needed {
            self.in_vain(Kind::Secret, &format!("secret `{shown}`"), &shown);
        }
    }

    fn secret_grant(
        &self,
        request: &SecretRequest,
        need: &NeededSecret,
        origin: OriginPattern,
        allowed: &PolicySecret,
    ) -> SecretGrant {
        let first = |archetype: &Option<String>, need: &Option<String>, default: &str| {
            archetype
                .as_ref()
                .or(need.as_ref())
                .map_or_else(|| default.to_owned(), Clone::clone)
        };
        SecretGrant {
            name: request.name.clone(),
            origin,
            header: first(&request.header, &need.header, HEADER).to_ascii_lowercase(),
            format: first(&request.format, &need.format, FORMAT),
            rule: self.rule(&allowed.rule),
        }
    }

    /// A secret travels with requests: without an origin that they may go to, it is never used.
    fn unreachable_secrets(&mut self) {
        let idle = |secret: &&SecretGrant| {
            !self
                .out
                .grant
                .http
                .iter()
                .any(|http| http.pattern.intersect(&secret.origin).is_some())
        };
        let warnings: Vec<String> = self
            .out
            .grant
            .secrets
            .iter()
            .filter(idle)
            .map(|secret| {
                format!(
                    "{} grants plugin `{}` secret `{}` for `{}`, to which it may send no request",
                    self.granter, self.plugin.name, secret.name, secret.origin
                )
            })
            .collect();
        self.out.warnings.extend(warnings);
    }
}

/// Whether every address that the grant names is one that it does not let be reached: a literal address of a private
/// network, say, that only one of archetype and policy names.
fn is_void(grant: &OriginGrant) -> bool {
    // Ranges shorter than these reach across blocks of different kinds.
    const SHORTEST_V4: u8 = 8;
    const SHORTEST_V6: u8 = 7;
    match &grant.pattern.host {
        HostPattern::Any | HostPattern::Label(_) => false,
        HostPattern::Name(name) => name == "localhost" && !grant.private,
        HostPattern::Range(net) => {
            let shortest = if net.addr().is_ipv4() { SHORTEST_V4 } else { SHORTEST_V6 };
            let class = address_class(net.network());
            let uniform = net.prefix_len() >= shortest && class == address_class(net.broadcast());
            uniform
                && match class {
                    AddressClass::Public => false,
                    AddressClass::Metadata => !grant.metadata,
                    AddressClass::Multicast | AddressClass::Unspecified => true,
                    AddressClass::Private
                    | AddressClass::Loopback
                    | AddressClass::LinkLocal
                    | AddressClass::Reserved => !grant.private,
                }
        }
    }
}

/// Drops what another grant covers already, with the same rights or more.
fn prune(grants: &mut Vec<OriginGrant>) {
    let all = std::mem::take(grants);
    for (at, grant) in all.iter().enumerate() {
        let covered = all.iter().enumerate().any(|(other_at, other)| {
            let wider = other.pattern.contains(&grant.pattern)
                && (other.private || !grant.private)
                && (other.metadata || !grant.metadata);
            let equal =
                other.pattern == grant.pattern && other.private == grant.private && other.metadata == grant.metadata;
            at != other_at && wider && (!equal || other_at < at)
        });
        if !covered {
            grants.push(grant.clone());
        }
    }
}
