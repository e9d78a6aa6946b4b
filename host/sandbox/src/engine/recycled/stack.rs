//! Stacks on which guests run, used again as memories are.

use std::ops::Range;
use std::sync::Arc;

use wasmtime::{StackCreator, StackMemory};

use super::super::settings::STACK_KEPT;
use super::map::Mapping;
use super::scan::Pagemap;
use super::shelf::Shelf;

/// Makes stacks, of those that came back where there are any.
pub(super) struct Stacks(Arc<Inner>);

struct Inner {
    pagemap: Arc<Pagemap>,
    shelf: Shelf<Mapping>,
}

/// One stack: a page that nobody can touch, and the stack above it.
struct Recycled {
    /// Absent only while it is dropped.
    mapping: Option<Mapping>,
    size: usize,
    stacks: Arc<Inner>,
}

impl Stacks {
    /// As many as `most` wait for their next call.
    pub(super) fn new(pagemap: Arc<Pagemap>, most: usize) -> Self {
        Self(Arc::new(Inner {
            pagemap,
            shelf: Shelf::new(most),
        }))
    }
}

fn guard() -> usize {
    rustix::param::page_size()
}

fn stack(size: usize) -> std::io::Result<Mapping> {
    let mapping = Mapping::new(guard() + size)?;
    mapping.small_pages();
    mapping.allow(guard(), size)?;
    Ok(mapping)
}

// SAFETY: a stack is whole pages, zero when it is handed out, since a new mapping is and what is taken from the shelf was
// wiped, and has a page below it that cannot be touched.
unsafe impl StackCreator for Stacks {
    fn new_stack(&self, size: usize, _zeroed: bool) -> wasmtime::Result<Box<dyn StackMemory>> {
        let size = size.next_multiple_of(guard());
        let mapping = match self.0.shelf.take(size) {
            Some(mapping) => mapping,
            // What waits takes addresses and maps that a stack of another size may lack.
            None => stack(size).or_else(|_| {
                self.0.shelf.clear();
                stack(size)
            })?,
        };
        Ok(Box::new(Recycled {
            mapping: Some(mapping),
            size,
            stacks: Arc::clone(&self.0),
        }))
    }
}

impl Recycled {
    /// Where the guard begins.
    fn base(&self) -> *mut u8 {
        self.mapping
            .as_ref()
            .map_or(std::ptr::null_mut(), |mapping| mapping.base().as_ptr())
    }
}

// SAFETY: the ranges are those of the mapping, which lives as long as this value.
unsafe impl StackMemory for Recycled {
    fn top(&self) -> *mut u8 {
        self.base().wrapping_add(guard() + self.size)
    }

    fn range(&self) -> Range<usize> {
        let bottom = self.base() as usize + guard();
        bottom..bottom + self.size
    }

    fn guard_range(&self) -> Range<*mut u8> {
        self.base()..self.base().wrapping_add(guard())
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        // Whatever fails on the way drops the mapping.
        let Some(mapping) = self.mapping.take() else { return };
        let stack = mapping.part(guard(), self.size);
        let pagemap = &self.stacks.pagemap;
        // SAFETY: nothing runs on it any more, and nobody else has a pointer into it.
        let Ok(kept) = (unsafe { pagemap.wipe(stack, self.size, STACK_KEPT) }) else {
            return;
        };
        let Err(mapping) = self.stacks.shelf.put(self.size, mapping, kept) else {
            return;
        };
        // SAFETY: as above.
        if unsafe { pagemap.wipe(stack, self.size, 0) }.is_ok() {
            let _ = self.stacks.shelf.put(self.size, mapping, 0);
        }
    }
}
