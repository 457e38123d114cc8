//! The system's allocator, with a count of the bytes that are allocated.
//!
//! One counter would be a cache line that all threads write to with every allocation. So each thread
//! counts for itself, and adds its count to the common one whenever it exceeds a few kilobytes, and when
//! the thread ends. The sum is right whichever thread frees what another has allocated.
//!
//! An allocation counts with what the allocator of the GNU C library adds to it: a word, rounded up to
//! 16 bytes. For the many small allocations of a search this is a third more than was asked for.
//!
//! What is freed must leave the process too, or the next history starts with the pages of the last one.
//! [`tame`] makes the C library map every large table by itself, so that it is unmapped when it is freed,
//! and [`release`] returns free pages among the small allocations. Elsewhere both do nothing.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// The system's allocator, counted.
#[derive(Debug)]
pub struct CountingAllocator;

/// Number of bytes that a thread counts for itself before it adds them to the common count.
const UNCOUNTED_BYTES: u64 = 16 << 10;

static COUNTED: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// The bytes that a thread has not added to the common count yet; negative if it freed more. It is
    /// never dropped, so that counting needs no look at whether it is still there.
    static PENDING: Cell<i64> = const { Cell::new(UNKNOWN_THREAD) };
    static AT_END: AtEnd = const { AtEnd };
}

/// In place of a count, for a thread that has counted nothing yet or is ending: large enough that the
/// first allocation goes to [`add_to_common`].
const UNKNOWN_THREAD: i64 = i64::MAX / 2;

/// Adds what a thread has counted when it ends.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        let counted = PENDING.replace(UNKNOWN_THREAD);
        if counted != UNKNOWN_THREAD {
            COUNTED.fetch_add(counted, Ordering::Relaxed);
        }
    }
}

/// Returns how many bytes are allocated; 0 in a program without [`CountingAllocator`]. Up to 16 KiB of each
/// other thread are not in it.
pub fn allocated() -> u64 {
    let pending = match PENDING.get() {
        UNKNOWN_THREAD => 0,
        pending => pending,
    };
    u64::try_from(COUNTED.load(Ordering::Relaxed) + pending).unwrap_or(0)
}

#[inline]
fn add(bytes: i64) {
    let sum = PENDING.get().wrapping_add(bytes);
    if sum.unsigned_abs() < UNCOUNTED_BYTES {
        PENDING.set(sum);
    } else {
        add_to_common(bytes);
    }
}

/// Counts bytes that make a thread's own count too large, that are the first of the thread, or that come
/// after its end.
#[cold]
fn add_to_common(bytes: i64) {
    match PENDING.get() {
        UNKNOWN_THREAD => {
            COUNTED.fetch_add(bytes, Ordering::Relaxed);
            // A thread that is ending counts no more for itself.
            if AT_END.try_with(|_| ()).is_ok() {
                PENDING.set(0);
            }
        }
        pending => {
            COUNTED.fetch_add(pending + bytes, Ordering::Relaxed);
            PENDING.set(0);
        }
    }
}

/// Returns the bytes that an allocation takes that there is, so far fewer than `isize::MAX`.
#[inline]
fn taken(bytes: usize) -> i64 {
    const WORD: i64 = size_of::<usize>() as i64;
    (bytes as i64).wrapping_add(WORD + 15) & !15
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod library {
    use std::ffi::c_int;

    /// Smallest size of an allocation that is mapped by itself. Mapping costs one page fault for every
    /// page, which is little beside the work that fills so large a table.
    const MAPPED_BYTES: c_int = 1 << 20;
    /// Largest number of arenas, in each of which free pages can be left over.
    const MAX_ARENAS: c_int = 4;

    const M_MMAP_THRESHOLD: c_int = -3;
    const M_ARENA_MAX: c_int = -8;

    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
        fn malloc_trim(pad: usize) -> c_int;
    }

    pub(super) fn tame() {
        // SAFETY: the C library documents both parameters, and takes any value of them at any time.
        unsafe {
            mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
            mallopt(M_ARENA_MAX, MAX_ARENAS);
        }
    }

    pub(super) fn release() {
        // SAFETY: it may be called by any thread at any time.
        unsafe { malloc_trim(0) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod library {
    pub(super) fn tame() {}
    pub(super) fn release() {}
}

/// Makes the system's allocator return large tables to the system when they are freed; for the start of
/// a program that has memory limits.
pub fn tame() {
    library::tame();
}

/// Returns free pages to the system.
pub(crate) fn release() {
    library::release();
}

// SAFETY: every call goes to the system's allocator with the same arguments; counting allocates
// nothing and cannot panic.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let found = unsafe { System.alloc(layout) };
        if !found.is_null() {
            add(taken(layout.size()));
        }
        found
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let found = unsafe { System.alloc_zeroed(layout) };
        if !found.is_null() {
            add(taken(layout.size()));
        }
        found
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and what was allocated here was
        // allocated by the system's allocator.
        unsafe { System.dealloc(at, layout) };
        add(-taken(layout.size()));
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`.
        let found = unsafe { System.realloc(at, layout, size) };
        if !found.is_null() {
            add(taken(size) - taken(layout.size()));
        }
        found
    }
}
