//! The system's allocator, with a count of the bytes that are allocated.
//!
//! One counter would be a cache line that all threads write to. There are several, and a thread adds to
//! its own; the sum of all is right whichever thread frees what another has allocated.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// The system's allocator, counted.
#[derive(Debug)]
pub struct CountingAllocator;

/// Number of counters; threads beyond it share them.
const COUNTERS: usize = 16;

/// A counter in a cache line of its own.
#[repr(align(128))]
struct Counter(AtomicI64);

static COUNTED: [Counter; COUNTERS] = [const { Counter(AtomicI64::new(0)) }; COUNTERS];
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The counter of this thread, or `COUNTERS` if it has none yet.
    static OWN: Cell<usize> = const { Cell::new(COUNTERS) };
}

/// Returns how many bytes are allocated; 0 in a program without [`CountingAllocator`].
pub fn allocated() -> u64 {
    let sum: i64 = COUNTED.iter().map(|Counter(count)| count.load(Ordering::Relaxed)).sum();
    u64::try_from(sum).unwrap_or(0)
}

#[inline]
fn add(bytes: i64) {
    // A thread that is ending may have lost its variables; any counter will do.
    let own = OWN.try_with(|own| match own.get() {
        COUNTERS => {
            let next = THREADS.fetch_add(1, Ordering::Relaxed) % COUNTERS;
            own.set(next);
            next
        }
        own => own,
    });
    COUNTED[own.unwrap_or(0)].0.fetch_add(bytes, Ordering::Relaxed);
}

#[inline]
fn signed(bytes: usize) -> i64 {
    // A layout is at most `isize::MAX` bytes.
    bytes as i64
}

// SAFETY: every call goes to the system's allocator with the same arguments; counting allocates
// nothing and cannot panic.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let found = unsafe { System.alloc(layout) };
        if !found.is_null() {
            add(signed(layout.size()));
        }
        found
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let found = unsafe { System.alloc_zeroed(layout) };
        if !found.is_null() {
            add(signed(layout.size()));
        }
        found
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and what was allocated here was
        // allocated by the system's allocator.
        unsafe { System.dealloc(at, layout) };
        add(-signed(layout.size()));
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`.
        let found = unsafe { System.realloc(at, layout, size) };
        if !found.is_null() {
            add(signed(size) - signed(layout.size()));
        }
        found
    }
}
