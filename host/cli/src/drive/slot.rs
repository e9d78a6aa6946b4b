//! A child's place among those that run at once.
//!
//! A child that only waits for its own children gives its place up until it has something to do again: else parents
//! that wait for children, and children that wait for a place, could wait for each other for ever.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The place of one agent. The main agent needs none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot(Option<Arc<Place>>);

#[derive(Debug)]
struct Place {
    slots: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Slot {
    /// Waits for a place. Dropping every clone of it gives it back.
    pub(crate) async fn wait(slots: &Arc<Semaphore>) -> Self {
        let slot = Self(Some(Arc::new(Place {
            slots: slots.clone(),
            held: Mutex::new(None),
        })));
        slot.hold().await;
        slot
    }

    /// Waits until the place is held, if it is not.
    pub(crate) async fn hold(&self) {
        let Some(place) = &self.0 else { return };
        if lock(&place.held).is_some() {
            return;
        }
        // The semaphore is never closed, so that there always is a permit in the end.
        if let Ok(permit) = place.slots.clone().acquire_owned().await {
            lock(&place.held).get_or_insert(permit);
        }
    }

    /// Gives the place up for now.
    pub(crate) fn lend(&self) {
        if let Some(place) = &self.0 {
            drop(lock(&place.held).take());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
