//! Memories and stacks of our own, used again call after call.
//!
//! What makes a fresh instance dear is the kernel: to take an earlier call's pages back and to hand out new ones. Here
//! they stay, and what a call wrote is zeroed, page by page, as the kernel tells which those are. That is safe where the
//! kernel tells *every* page that may hold data ([`scan`]) and every failure gives the pages, or the whole address space,
//! back; nothing is handed out that was not wiped.

use std::sync::Arc;

use wasmtime::{Config, InstanceAllocationStrategy};

mod map;
mod memory;
mod scan;
mod shelf;
mod stack;

/// The configuration of an engine on recycled memories, of which `calls` are in use at once. Absent: this kernel does not
/// tell what is needed.
pub(super) fn config(calls: u32) -> Option<Config> {
    let pagemap = Arc::new(scan::Pagemap::open()?);
    let waiting = (calls as usize).min(super::settings::MOST_WAITING);
    let mut config = super::settings::base();
    config
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .with_host_memory(Arc::new(memory::Memories::new(Arc::clone(&pagemap), waiting)))
        .with_host_stack(Arc::new(stack::Stacks::new(pagemap, waiting)))
        // Memories of one's own are filled by copying: wasmtime can map an image into its own alone.
        .memory_init_cow(false);
    Some(config)
}
