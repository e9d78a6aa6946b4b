//! Linear memories that are used again: wiped by what the kernel says of their pages, accessible exactly as far as the
//! guest's memory reaches.

use std::io;
use std::sync::Arc;

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use super::super::settings::{MEMORY_KEPT, SELDOM, SELDOM_KEPT};
use super::map::Mapping;
use super::scan::Pagemap;
use super::shelf::Shelf;

/// Makes memories, of those that came back where there are any.
pub(super) struct Memories(Arc<Inner>);

struct Inner {
    pagemap: Arc<Pagemap>,
    shelf: Shelf<Slot>,
}

/// Address space of one memory: guard, memory, guard.
struct Slot {
    mapping: Mapping,
    guard: usize,
    reserved: usize,
    /// Beyond this, counted from the memory's begin, it has no pages.
    reach: usize,
    /// Calls that it has served.
    served: u32,
    /// A growth failed half way: what lies beyond the memory's size may be accessible, and no wipe reaches it.
    spoilt: bool,
}

/// One memory of one call.
struct Recycled {
    /// Absent only while it is dropped.
    slot: Option<Slot>,
    /// With which it began, and begins again.
    minimum: usize,
    size: usize,
    memories: Arc<Inner>,
}

impl Memories {
    /// As many as `most` wait for their next call.
    pub(super) fn new(pagemap: Arc<Pagemap>, most: usize) -> Self {
        Self(Arc::new(Inner {
            pagemap,
            shelf: Shelf::new(most),
        }))
    }
}

// SAFETY: a memory is zero when it is handed out, since a new mapping is and what is taken from the shelf was wiped; its
// base never moves, since all that it may grow to is reserved; before and behind it `guard` bytes stay inaccessible, and
// so does what lies between its size and its reservation.
unsafe impl MemoryCreator for Memories {
    fn new_memory(
        &self,
        ty: MemoryType,
        minimum: usize,
        _: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let page = rustix::param::page_size();
        let reserved = reserved.ok_or("a memory without a reservation")?;
        let whole = |bytes: usize| bytes.is_multiple_of(page);
        if ty.is_64() || ty.is_shared() || minimum > reserved || ![minimum, reserved, guard].into_iter().all(whole) {
            return Err("a memory of a kind that the engine does not allow".into());
        }
        let fits = |slot: &Slot| (slot.guard, slot.reserved) == (guard, reserved);
        let slot = match self.0.shelf.take(minimum).filter(fits) {
            Some(slot) => slot,
            None => {
                let new = || Slot::new(minimum, reserved, guard);
                // What waits takes addresses and maps that a memory of another size may lack.
                let slot = new().or_else(|_| {
                    self.0.shelf.clear();
                    new()
                });
                slot.map_err(|error| format!("cannot map a memory: {error}"))?
            }
        };
        Ok(Box::new(Recycled {
            slot: Some(slot),
            minimum,
            size: minimum,
            memories: Arc::clone(&self.0),
        }))
    }
}

impl Slot {
    fn new(minimum: usize, reserved: usize, guard: usize) -> io::Result<Self> {
        let mapping = Mapping::new(guard + reserved + guard)?;
        mapping.allow(guard, minimum)?;
        Ok(Self {
            mapping,
            guard,
            reserved,
            reach: minimum,
            served: 0,
            spoilt: false,
        })
    }
}

// SAFETY: as of `Memories`; `as_ptr` is the same for the memory's whole life.
unsafe impl LinearMemory for Recycled {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.slot.as_ref().map_or(0, |slot| slot.reserved)
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        let Some(slot) = &mut self.slot else {
            return Err(wasmtime::format_err!("the memory is gone"));
        };
        if size < self.size || size > slot.reserved {
            return Err(wasmtime::format_err!("the memory cannot have {size} bytes"));
        }
        let (at, length) = (slot.guard + self.size, size - self.size);
        if let Err(error) = slot.mapping.allow(at, length) {
            // The kernel may have come as far as the next of its maps before it failed. The guest, which lives on, must
            // not reach that; should it do so all the same, nobody gets this slot after it.
            slot.spoilt = true;
            let _ = slot.mapping.forbid(at, length);
            return Err(error.into());
        }
        self.size = size;
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        match &self.slot {
            Some(slot) => slot.mapping.part(slot.guard, 0).as_ptr().cast(),
            None => std::ptr::null_mut(),
        }
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        // Whatever fails on the way drops the slot, and with it the mapping.
        let Some(mut slot) = self.slot.take() else { return };
        if slot.spoilt {
            return;
        }
        slot.served = slot.served.wrapping_add(1);
        let most = if slot.served.is_multiple_of(SELDOM) {
            SELDOM_KEPT
        } else {
            MEMORY_KEPT
        };
        slot.reach = slot.reach.max(self.size);
        let Some(kept) = self.wipe(&mut slot, most) else { return };
        // By what it has grown it is not to begin with; the pages of that, all zero, wait for it to grow again.
        let grown = self.size - self.minimum;
        if slot.mapping.forbid(slot.guard + self.minimum, grown).is_err() {
            return;
        }
        self.size = self.minimum;
        let Err(mut slot) = self.memories.shelf.put(self.minimum, slot, kept) else {
            return;
        };
        if let Some(kept) = self.wipe(&mut slot, 0) {
            let _ = self.memories.shelf.put(self.minimum, slot, kept);
        }
    }
}

impl Recycled {
    /// Makes all of a slot zero, and tells how many bytes of memory it still takes, at most so many. Absent: it could not
    /// be done.
    fn wipe(&self, slot: &mut Slot, most: usize) -> Option<usize> {
        let part = slot.mapping.part(slot.guard, slot.reach);
        // SAFETY: the guest is gone, and nobody else has a pointer to its memory, which is accessible up to its size;
        // what an earlier call had beyond that was wiped after it, and no guest could reach it since.
        let kept = unsafe { self.memories.pagemap.wipe(part, self.size, most) }.ok()?;
        if kept == 0 {
            slot.reach = self.minimum;
        }
        Some(kept)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
