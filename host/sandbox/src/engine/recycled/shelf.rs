//! Where memories and stacks wait for their next call.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::super::settings::KEPT_IN_ALL;

/// What waits, by its size: the last that was returned first, since its pages are still in the processor's caches.
pub(super) struct Shelf<T> {
    waiting: Mutex<Waiting<T>>,
}

struct Waiting<T> {
    /// Never holds an empty list.
    by_size: BTreeMap<usize, Vec<(T, usize)>>,
    /// How many wait, of every size.
    count: usize,
    /// Bytes of memory that all of them take.
    kept: usize,
    most: usize,
}

impl<T> Shelf<T> {
    /// Room for so many.
    pub(super) fn new(most: usize) -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                by_size: BTreeMap::new(),
                count: 0,
                kept: 0,
                most,
            }),
        }
    }

    /// One of that size.
    pub(super) fn take(&self, size: usize) -> Option<T> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.take(size)
    }

    /// Puts one back that takes `kept` bytes of memory. `Err`: there is no room for so much memory; what it takes is to be
    /// given back first.
    pub(super) fn put(&self, size: usize, one: T, kept: usize) -> Result<(), T> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.kept.saturating_add(kept) > KEPT_IN_ALL {
            return Err(one);
        }
        // One of another size makes room: sizes that are asked for no more must not fill the shelf.
        let evicted = if waiting.count >= waiting.most {
            let other = waiting.by_size.keys().copied().find(|other| *other != size);
            Some(waiting.take(other.unwrap_or(size)))
        } else {
            None
        };
        waiting.by_size.entry(size).or_default().push((one, kept));
        waiting.count += 1;
        waiting.kept += kept;
        drop(waiting);
        // Its address space is given back outside of the lock.
        drop(evicted);
        Ok(())
    }

    /// Gives back all that waits.
    pub(super) fn clear(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut waiting.by_size);
        (waiting.count, waiting.kept) = (0, 0);
        drop(waiting);
        drop(all);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).kept
    }
}

impl<T> Waiting<T> {
    fn take(&mut self, size: usize) -> Option<T> {
        let list = self.by_size.get_mut(&size)?;
        let (one, kept) = list.pop()?;
        if list.is_empty() {
            self.by_size.remove(&size);
        }
        self.count -= 1;
        self.kept -= kept;
        Some(one)
    }
}
