//! The system's allocator, with a count of the bytes that are allocated.
//!
//! A single counter would be a cache line to which all threads write with every allocation. So each
//! thread has its own count, and adds it to the common one when it exceeds a few kilobytes and when
//! the thread ends. The sum is correct even if one thread frees the allocations of another.
//!
//! An allocation counts with the overhead of the GNU C library's allocator: one word more, rounded
//! up to 16 bytes. For the many small allocations of a search this is a third more than was
//! requested.
//!
//! Freed memory must also be returned to the system, or the next history starts with the pages of
//! the previous one. [`tame`] makes the C library map every large table separately, so that the
//! table is unmapped when it is freed, and [`release`] returns free pages among the small
//! allocations. With other C libraries both do nothing.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// The system's allocator, with a count of the allocated bytes.
#[derive(Debug)]
pub struct CountingAllocator;

/// Number of bytes that a thread counts before it adds them to the common count.
const UNCOUNTED_BYTES: u64 = 16 << 10;

static COUNTED: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// Bytes that a thread has not yet added to the common count; negative if it freed more. The
    /// cell is never dropped, so counting need not check whether it still exists.
    static PENDING: Cell<i64> = const { Cell::new(UNKNOWN_THREAD) };
    static AT_END: AtEnd = const { AtEnd };
}

/// Value of the count of a thread that has counted nothing yet or is ending. It is so large that
/// the first allocation calls [`add_to_common`].
const UNKNOWN_THREAD: i64 = i64::MAX / 2;

/// Adds a thread's count to the common one when the thread ends.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        let counted = PENDING.replace(UNKNOWN_THREAD);
        if counted != UNKNOWN_THREAD {
            COUNTED.fetch_add(counted, Ordering::Relaxed);
        }
    }
}

/// Returns the number of allocated bytes; 0 in a program without [`CountingAllocator`]. Up to 16
/// KiB of every other thread are missing from it.
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

/// Adds bytes to the common count: if they make the thread's own count too large, if they are the
/// first of the thread, or if they come after its end.
#[cold]
fn add_to_common(bytes: i64) {
    match PENDING.get() {
        UNKNOWN_THREAD => {
            COUNTED.fetch_add(bytes, Ordering::Relaxed);
            // A thread that is ending has no count of its own any more.
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

/// Returns the bytes that an existing allocation takes; an allocation has fewer than `isize::MAX`
/// bytes.
#[inline]
fn taken(bytes: usize) -> i64 {
    const WORD: i64 = size_of::<usize>() as i64;
    (bytes as i64).wrapping_add(WORD + 15) & !15
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod library {
    use std::ffi::c_int;

    /// Smallest size of an allocation that is mapped separately. Mapping costs one page fault per
    /// page, which is little compared with the work that fills such a large table.
    const MAPPED_BYTES: c_int = 1 << 20;
    /// Largest number of arenas, each of which can retain free pages.
    const MAX_ARENAS: c_int = 4;

    const M_MMAP_THRESHOLD: c_int = -3;
    const M_ARENA_MAX: c_int = -8;

    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
        fn malloc_trim(pad: usize) -> c_int;
    }

    pub(super) fn tame() {
        // SAFETY: the C library documents both parameters, and accepts any value of them at any
        // time.
        unsafe {
            mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
            mallopt(M_ARENA_MAX, MAX_ARENAS);
        }
    }

    pub(super) fn release() {
        // SAFETY: any thread may call the function at any time.
        unsafe { malloc_trim(0) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod library {
    pub(super) fn tame() {}
    pub(super) fn release() {}
}

/// Makes the system's allocator return large tables to the system when they are freed. To be called
/// at the start of a program that has memory limits.
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
        // SAFETY: the caller fulfils the contract of `alloc`.
        let found = unsafe { System.alloc(layout) };
        if !found.is_null() {
            add(taken(layout.size()));
        }
        found
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of `alloc_zeroed`.
        let found = unsafe { System.alloc_zeroed(layout) };
        if !found.is_null() {
            add(taken(layout.size()));
        }
        found
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of `dealloc`, and every allocation of this
        // allocator was made by the system's allocator.
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
