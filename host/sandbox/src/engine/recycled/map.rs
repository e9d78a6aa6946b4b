//! Address space of our own: reserved once, made accessible in parts, given back when it is dropped.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};

/// Private anonymous memory, inaccessible at first.
pub(super) struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: it is memory that the mapping alone owns; nothing in it belongs to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; what changes protection takes effect for the whole process and is asked for by the owner.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves so many bytes, a multiple of the page's.
    pub(super) fn new(length: usize) -> io::Result<Self> {
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at nothing"))?;
        Ok(Self { base, length })
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// A part of it, which lies within.
    pub(super) fn part(&self, at: usize, length: usize) -> NonNull<[u8]> {
        assert!(
            at.checked_add(length).is_some_and(|end| end <= self.length),
            "the part lies within"
        );
        // SAFETY: just checked.
        NonNull::slice_from_raw_parts(unsafe { self.base.add(at) }, length)
    }

    /// Makes a part readable and writable.
    pub(super) fn allow(&self, at: usize, length: usize) -> io::Result<()> {
        self.protect(at, length, MprotectFlags::READ | MprotectFlags::WRITE)
    }

    /// Makes a part inaccessible. What its pages hold stays.
    pub(super) fn forbid(&self, at: usize, length: usize) -> io::Result<()> {
        self.protect(at, length, MprotectFlags::empty())
    }

    /// Keeps the kernel from backing it with huge pages, of which a stack would use a corner.
    pub(super) fn small_pages(&self) {
        // SAFETY: advice on this mapping. A kernel without huge pages refuses it, which is as well.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), self.length, Advice::LinuxNoHugepage) };
    }

    fn protect(&self, at: usize, length: usize, flags: MprotectFlags) -> io::Result<()> {
        if length > 0 {
            // SAFETY: the part lies within this mapping.
            unsafe { mprotect(self.part(at, length).as_ptr().cast(), length, flags) }?;
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's alone, and nobody uses it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
