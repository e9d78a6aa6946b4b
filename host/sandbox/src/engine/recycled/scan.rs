//! Which pages of a range hold anything, as the kernel tells it (`PAGEMAP_SCAN`, Linux 6.7), and zeroing just those.
//!
//! A private anonymous page whose entry is empty reads as zero, and so does one that shows the kernel's page of zeros.
//! Every other page may hold data: one that is present, and one whose entry is a swap entry, which the kernel also uses
//! for pages that are swapped out, that are being migrated (memory compaction) or that are poisoned. Wasmtime's own scan
//! asks for present pages alone and so can miss one that is under way; this one asks for both.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::NonNull;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::mm::{Advice, madvise};

/// The page is in memory (`PAGE_IS_PRESENT` of the kernel's `fs.h`, as the next two).
const PRESENT: u64 = 1 << 3;
/// The page is behind a swap entry: swapped out, being migrated, or poisoned.
const SWAPPED: u64 = 1 << 4;
/// The page is the kernel's page of zeros.
const PFNZERO: u64 = 1 << 5;
/// Ranges of pages that one call of the kernel's tells: an echo's memory has about ten.
const AT_ONCE: usize = 32;

/// The kernel's account of this process's pages.
pub(super) struct Pagemap {
    file: File,
    /// Whose pages the file tells of: a child of a fork has others.
    process: u32,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// How many ranges were found, and where the kernel stopped.
struct Scanned {
    regions: usize,
    walk_end: u64,
}

// SAFETY: `PAGEMAP_SCAN` is `_IOWR('f', 16, struct pm_scan_arg)`; the kernel reads and writes that struct, and writes at
// most `vec_len` regions to `vec`.
unsafe impl Ioctl for Scan {
    type Output = Scanned;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Self>(b'f', 16)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, scan: *mut c_void) -> rustix::io::Result<Scanned> {
        Ok(Scanned {
            regions: usize::try_from(out).map_err(|_| rustix::io::Errno::INVAL)?,
            // SAFETY: the caller gives the pointer that `as_ptr` gave.
            walk_end: unsafe { (*scan.cast::<Self>()).walk_end },
        })
    }
}

impl Pagemap {
    /// Opens it, and tries it on pages of which the answer is known. Absent: this kernel does not have it, or answers
    /// otherwise than expected.
    pub(super) fn open() -> Option<Self> {
        let pagemap = Self {
            file: File::open("/proc/self/pagemap").ok()?,
            process: std::process::id(),
        };
        pagemap.tells_the_truth().then_some(pagemap)
    }

    /// Of three pages the first is written, the second only read, the third never touched: just the first is told.
    fn tells_the_truth(&self) -> bool {
        let page = rustix::param::page_size();
        let Ok(pages) = super::map::Mapping::new(3 * page) else {
            return false;
        };
        // A huge page would be told as a whole.
        pages.small_pages();
        if pages.allow(0, 3 * page).is_err() {
            return false;
        }
        let first = pages.base();
        // SAFETY: the mapping has three readable and writable pages.
        unsafe {
            first.as_ptr().write_volatile(1);
            first.as_ptr().add(page).read_volatile();
        }
        let start = first.as_ptr() as u64;
        let mut regions = [Region::default(); AT_ONCE];
        match self.scan(start, start + 3 * page as u64, &mut regions) {
            Ok(scanned) => {
                scanned.regions == 1
                    && scanned.walk_end == start + 3 * page as u64
                    && (regions[0].start, regions[0].end) == (start, start + page as u64)
            }
            Err(_) => false,
        }
    }

    fn scan(&self, start: u64, end: u64, regions: &mut [Region; AT_ONCE]) -> io::Result<Scanned> {
        let scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start,
            end,
            walk_end: 0,
            vec: regions.as_mut_ptr() as u64,
            vec_len: AT_ONCE as u64,
            max_pages: 0,
            // A page counts if it is not the page of zeros, and is present or behind a swap entry.
            category_inverted: PFNZERO,
            category_mask: PFNZERO,
            category_anyof_mask: PRESENT | SWAPPED,
            return_mask: PRESENT | SWAPPED,
        };
        // SAFETY: the file is a pagemap, for which the call is made; it writes to `regions`, which outlives it.
        Ok(unsafe { ioctl(&self.file, scan) }?)
    }

    /// Zeroes what the first `written` bytes of a range hold, as long as all that the range holds is no more than `kept`
    /// bytes, which then stay in memory. `None`: it is more, and nothing is promised of the range.
    ///
    /// # Safety
    /// As of [`Pagemap::wipe`].
    unsafe fn zero(&self, range: NonNull<[u8]>, written: usize, kept: usize) -> io::Result<Option<usize>> {
        if std::process::id() != self.process {
            return Err(io::Error::other("the pagemap is another process's"));
        }
        let base = range.as_ptr().cast::<u8>();
        let (mut start, end) = (base as u64, base as u64 + range.len() as u64);
        let mut regions = [Region::default(); AT_ONCE];
        let mut held = 0;
        while start < end {
            let scanned = self.scan(start, end, &mut regions)?;
            let found = regions.get(..scanned.regions);
            for region in found.ok_or_else(|| io::Error::other("more regions than there is room for"))? {
                let sound = start <= region.start && region.start < region.end && region.end <= end;
                if !sound {
                    return Err(io::Error::other("a region lies outside of what was asked for"));
                }
                let (at, length) = (
                    (region.start - base as u64) as usize,
                    (region.end - region.start) as usize,
                );
                held += length;
                if held > kept {
                    return Ok(None);
                }
                let length = length.min(written.saturating_sub(at));
                // SAFETY: it lies within the part of the range that is the caller's to write.
                unsafe { base.add(at).write_bytes(0, length) };
            }
            if scanned.walk_end <= start || scanned.walk_end > end {
                return Err(io::Error::other("the scan does not get on"));
            }
            start = scanned.walk_end;
        }
        Ok(Some(held))
    }

    /// Makes a range, of which the first `written` bytes may hold data and the rest is zero, read as zero, and tells how
    /// many bytes of memory it still takes: at most `kept`. Whatever the scan cannot do the kernel does by taking all
    /// pages back.
    ///
    /// # Errors
    /// Neither could be done: the range must not be used again.
    ///
    /// # Safety
    /// The range is private anonymous memory that nobody else uses and that begins and ends with a page; `written` of it
    /// is readable and writable and ends with a page too.
    pub(super) unsafe fn wipe(&self, range: NonNull<[u8]>, written: usize, kept: usize) -> io::Result<usize> {
        if range.is_empty() {
            return Ok(0);
        }
        // SAFETY: the caller's promise.
        if let Ok(Some(held)) = unsafe { self.zero(range, written, kept) } {
            return Ok(held);
        }
        // SAFETY: the caller's promise; private anonymous pages read as zero after it.
        unsafe { madvise(range.as_ptr().cast(), range.len(), Advice::LinuxDontNeed) }?;
        Ok(0)
    }

    /// One that fails whatever it is asked, as a kernel's may.
    #[cfg(test)]
    pub(super) fn broken() -> Self {
        Self {
            file: File::open("/dev/null").expect("there is one"),
            process: std::process::id(),
        }
    }

    /// One that was opened before a fork.
    #[cfg(test)]
    pub(super) fn of_another_process() -> Self {
        Self {
            process: std::process::id() + 1,
            ..Self::open().expect("this kernel tells of its pages")
        }
    }
}
