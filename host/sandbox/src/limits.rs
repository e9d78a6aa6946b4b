//! The bounds on one call's resources. What was denied is recorded, so that the outcome can say it: all that the guest
//! itself shows of it is a trap.

use fief_core::grant::Limits;
use wasmtime::ResourceLimiter;

/// What a guest was denied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denial {
    /// Linear memory.
    Memory,
    /// Table elements.
    Tables,
}

/// Counts what all instances of one call hold together.
pub(crate) struct Limiter {
    memory: u64,
    max_memory: u64,
    elements: u64,
    max_elements: u64,
    instances: usize,
    /// What the growth that is under way adds, to be taken back if it fails.
    growing: u64,
    /// The last denial.
    pub(crate) denial: Option<Denial>,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory: 0,
            max_memory: limits.memory,
            elements: 0,
            max_elements: limits.tables,
            instances: usize::try_from(limits.instances).unwrap_or(usize::MAX),
            growing: 0,
            denial: None,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.growing = (desired - current) as u64;
        if self.memory.saturating_add(self.growing) > self.max_memory {
            self.denial = Some(Denial::Memory);
            return Ok(false);
        }
        self.memory += self.growing;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory = self.memory.saturating_sub(self.growing);
        self.growing = 0;
        self.denial = Some(Denial::Memory);
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.growing = (desired - current) as u64;
        if self.elements.saturating_add(self.growing) > self.max_elements {
            self.denial = Some(Denial::Tables);
            return Ok(false);
        }
        self.elements += self.growing;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.elements = self.elements.saturating_sub(self.growing);
        self.growing = 0;
        self.denial = Some(Denial::Tables);
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}
