//! Whether a request may leave: its origin against the grants, then each address that its host resolves to.

use std::net::IpAddr;
use std::sync::Arc;

use super::OriginGrant;
use super::address::{AddressClass, address_class};
use super::target::{Host, Target};

/// Why a request may not leave.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{target}` {reason}")]
pub struct Refusal {
    /// The origin, and the address where it was that.
    pub target: String,
    /// What stands against it.
    pub reason: String,
    /// The rule that decided, for the audit.
    pub rule: Arc<str>,
}

/// The grant under which a request to `target` may leave. Where several match, the one that allows most decides, since
/// each of them is a right of its own. A literal address is checked at once; a name is not settled before
/// [`check_address`] has seen every address that it resolves to.
///
/// # Errors
/// [`Refusal`] if no grant names the origin, or if it is an address that the grant does not cover.
pub fn decide<'a>(grants: &'a [OriginGrant], target: &Target) -> Result<&'a OriginGrant, Refusal> {
    let rights = |grant: &OriginGrant| (grant.metadata, grant.private);
    let mut found: Option<&OriginGrant> = None;
    for grant in grants.iter().filter(|grant| grant.pattern.matches(target)) {
        if found.is_none_or(|best| rights(grant) > rights(best)) {
            found = Some(grant);
        }
    }
    let grant = found.ok_or_else(|| not_granted(grants, target))?;
    if let Host::Address(address) = target.host {
        check_address(grant, target, address)?;
    }
    Ok(grant)
}

fn not_granted(grants: &[OriginGrant], target: &Target) -> Refusal {
    let reason = if grants.is_empty() {
        "is not granted: no origin is".into()
    } else {
        let granted: Vec<String> = grants.iter().map(|grant| format!("`{}`", grant.pattern)).collect();
        format!("is not granted: only {}", granted.join(", "))
    };
    Refusal {
        target: target.to_string(),
        reason,
        rule: "no grant names this origin".into(),
    }
}

/// Whether a connection for `target`, which `grant` let through, may go to `address`. To be asked of every address that
/// the name resolved to, and the connection pinned to one that passed.
///
/// # Errors
/// [`Refusal`] if the address is not on the open internet and the grant does not say that it may be elsewhere; if it
/// is a metadata address that policy does not name; if it is one that no grant can name.
pub fn check_address(grant: &OriginGrant, target: &Target, address: IpAddr) -> Result<(), Refusal> {
    let class = address_class(address);
    let refuse = |reason: &str| {
        let target = match &target.host {
            Host::Name(_) => format!("{target} ({address})"),
            Host::Address(_) => target.to_string(),
        };
        let rule = Arc::clone(&grant.rule);
        Err(Refusal {
            target,
            reason: format!("is refused: its address is {}{reason}", class.as_str()),
            rule,
        })
    };
    if let Host::Name(name) = &target.host
        && name == "localhost"
        && class != AddressClass::Loopback
    {
        return refuse(", and `localhost` is this machine alone");
    }
    if let Host::Address(literal) = target.host
        && literal != address.to_canonical()
    {
        return refuse(", and not the one that was asked for");
    }
    match class {
        AddressClass::Public => Ok(()),
        AddressClass::Metadata if grant.metadata => Ok(()),
        AddressClass::Metadata => refuse(", and policy does not name it"),
        AddressClass::Multicast | AddressClass::Unspecified => refuse(""),
        AddressClass::Private | AddressClass::Loopback | AddressClass::LinkLocal | AddressClass::Reserved => {
            if grant.private {
                Ok(())
            } else if matches!(target.host, Host::Address(_)) {
                refuse(", and archetype and policy do not both name it")
            } else {
                refuse(", and the grant does not say `private = true`")
            }
        }
    }
}
