//! What a tree of agents may spend, and how a parent shares it among its children.
//!
//! Each agent has an [`Account`] over its own tree. A child's share is reserved before it starts, so that siblings
//! that run at once cannot spend the same tokens, and what it did not spend comes back when it ends. Time is not
//! shared out here: it passes for all alike, and the driver has the clock.

use std::collections::HashMap;

use crate::agent::spec::Bounds;
use crate::manifest::archetype::BudgetRequest;
use crate::message::Usage;

/// What an agent and its descendants may spend; absent: no bound.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Allowance {
    /// Input and output tokens.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<f64>,
    /// Descendants.
    pub children: Option<u32>,
}

impl Allowance {
    /// The narrower of an agent's own bounds and what it was allowed.
    #[must_use]
    pub fn within(self, bounds: &Bounds) -> Self {
        Self {
            tokens: narrower(self.tokens, bounds.tokens),
            cost: narrower(self.cost, bounds.cost),
            children: narrower(self.children, bounds.children),
        }
    }
}

fn narrower<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a < b { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// The account of one agent's tree.
#[derive(Clone, Debug, Default)]
pub struct Account {
    limit: Allowance,
    tokens: u64,
    cost: f64,
    children: u32,
    reserved: HashMap<String, Reservation>,
    /// The sum of all reservations: a parent asks for it once for each of its children.
    held: Reservation,
}

/// What is set aside for one child, itself included.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    tokens: u64,
    cost: f64,
    children: u32,
}

/// Why a child's share could not be set aside.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("the budget for {what} of {limit} is used up")]
pub struct Exhausted {
    /// `tokens`, `cost` or `children`.
    pub what: &'static str,
    /// The bound.
    pub limit: String,
}

impl Account {
    /// An account from which nothing is spent yet.
    #[must_use]
    pub fn new(limit: Allowance) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// The bound.
    #[must_use]
    pub fn limit(&self) -> Allowance {
        self.limit
    }

    /// What can still be spent or reserved.
    #[must_use]
    pub fn left(&self) -> Allowance {
        let held = self.held;
        Allowance {
            tokens: self
                .limit
                .tokens
                .map(|limit| limit.saturating_sub(self.tokens).saturating_sub(held.tokens)),
            cost: self.limit.cost.map(|limit| (limit - self.cost - held.cost).max(0.0)),
            children: self
                .limit
                .children
                .map(|limit| limit.saturating_sub(self.children).saturating_sub(held.children)),
        }
    }

    /// How many children hold a reservation.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.reserved.len()
    }

    /// Books what the agent's own model cost.
    pub fn spend(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(usage.tokens());
        self.cost += usage.cost.unwrap_or(0.0);
    }

    /// Sets aside a child's share, under the id of the call that starts it: what the child's own `[budget]` asks for,
    /// at most an equal part of what is left, `reserve` tokens kept back, among the `starting` children of this turn
    /// that have not started, this one included.
    ///
    /// # Errors
    /// [`Exhausted`] if nothing is left of something; nothing is set aside then.
    pub fn reserve(
        &mut self,
        call: &str,
        asked: &BudgetRequest,
        starting: u32,
        reserve: u64,
    ) -> Result<Allowance, Exhausted> {
        let left = self.left();
        let starting = starting.max(1);
        let children = match left.children {
            None => None,
            Some(0) => return Err(exhausted("children", self.limit.children)),
            // Each child that is still to start counts itself; what is then left is shared.
            Some(left) => Some(left.saturating_sub(starting) / starting),
        };
        let tokens = match left
            .tokens
            .map(|left| left.saturating_sub(reserve) / u64::from(starting))
        {
            Some(0) => return Err(exhausted("tokens", self.limit.tokens)),
            share => share,
        };
        let cost = match left.cost.map(|left| left / f64::from(starting)) {
            Some(share) if share <= 0.0 => return Err(exhausted("cost", self.limit.cost)),
            share => share,
        };
        let granted = Allowance {
            tokens: narrower(tokens, asked.tokens),
            cost: narrower(cost, asked.cost),
            children: narrower(children, asked.children),
        };
        let held = Reservation {
            // Only what this account bounds is held; a child's own bound costs an unbounded parent nothing.
            tokens: self.limit.tokens.and(granted.tokens).unwrap_or(0),
            cost: self.limit.cost.and(granted.cost).unwrap_or(0.0),
            children: self
                .limit
                .children
                .map_or(0, |_| granted.children.unwrap_or(0).saturating_add(1)),
        };
        self.give_back(call);
        self.reserved.insert(call.into(), held);
        self.held.tokens = self.held.tokens.saturating_add(held.tokens);
        self.held.cost += held.cost;
        self.held.children = self.held.children.saturating_add(held.children);
        Ok(granted)
    }

    /// Gives a reservation back whole: the child never started.
    pub fn release(&mut self, call: &str) {
        self.give_back(call);
    }

    /// Gives a reservation back and books what the child's tree cost instead: `usage`, and the child and its
    /// `descendants`.
    pub fn settle(&mut self, call: &str, usage: &Usage, descendants: u32) {
        if self.give_back(call) {
            self.spend(usage);
            self.children = self.children.saturating_add(1).saturating_add(descendants);
        }
    }

    /// Whether there was anything to give back.
    fn give_back(&mut self, call: &str) -> bool {
        let Some(one) = self.reserved.remove(call) else {
            return false;
        };
        self.held = if self.reserved.is_empty() {
            // Exactly nothing, whatever was lost to rounding on the way.
            Reservation::default()
        } else {
            Reservation {
                tokens: self.held.tokens.saturating_sub(one.tokens),
                cost: (self.held.cost - one.cost).max(0.0),
                children: self.held.children.saturating_sub(one.children),
            }
        };
        true
    }
}

fn exhausted(what: &'static str, limit: Option<impl ToString>) -> Exhausted {
    Exhausted {
        what,
        limit: limit.map(|limit| limit.to_string()).unwrap_or_default(),
    }
}
