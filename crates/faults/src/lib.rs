//! Fault injection: points at which a test build can be made to fail.
//!
//! A read, a write, the creation of a thread, the allocation of a table within the memory limit and
//! a reading of the clock can fail at any time, but hardly ever do. So the code calls [`fails`]
//! before each of them. A test arms one kind of point with a number `n`; the `n`-th time that a
//! point of this kind is reached, it fails as the system would have failed. Running a command for
//! `n` = 1, 2, 3 and so on, until a run reaches fewer than `n` points, tries every failure of that
//! kind once.
//!
//! Points exist in builds with debug assertions. In a release build [`fails`] is a constant, and
//! nothing can be armed.

/// A kind of operation that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// A table is about to be allocated, and the memory budget is consulted.
    Memory,
    /// Bytes of an input are read.
    Read,
    /// Bytes of an output are written.
    Write,
    /// A thread is created.
    Thread,
    /// A time budget reads the clock.
    Clock,
}

impl Point {
    /// All kinds of points.
    pub const ALL: [Point; 5] =
        [Point::Memory, Point::Read, Point::Write, Point::Thread, Point::Clock];

    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Point::Memory => "memory",
            Point::Read => "read",
            Point::Write => "write",
            Point::Thread => "thread",
            Point::Clock => "clock",
        }
    }
}

/// The points of a build with debug assertions.
#[cfg(debug_assertions)]
mod armed {
    use super::Point;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// Number of points that remain until one fails, or 0 if none is to fail.
    static LEFT: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
    static FAILED: AtomicBool = AtomicBool::new(false);

    /// Makes the `nth` point of a kind fail, counting from 1.
    pub fn arm(point: Point, nth: u64) {
        LEFT[point as usize].store(nth, Ordering::SeqCst);
    }

    /// Checks whether an armed point was reached and failed.
    pub fn has_failed() -> bool {
        FAILED.load(Ordering::SeqCst)
    }

    /// Checks whether this point must fail.
    pub fn fails(point: Point) -> bool {
        let left = &LEFT[point as usize];
        if left.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let less = |left: u64| left.checked_sub(1);
        let is_last = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1);
        if is_last {
            FAILED.store(true, Ordering::SeqCst);
        }
        is_last
    }
}

#[cfg(debug_assertions)]
pub use armed::{arm, fails, has_failed};

/// Returns `false`: in a release build no point fails.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub const fn fails(_: Point) -> bool {
    false
}

/// Returns an error if this point must fail; for reads, writes and threads.
#[inline]
pub fn fail(point: Point) -> std::io::Result<()> {
    if !fails(point) {
        return Ok(());
    }
    let kind = match point {
        Point::Write => std::io::ErrorKind::StorageFull,
        Point::Thread => std::io::ErrorKind::WouldBlock,
        _ => std::io::ErrorKind::Other,
    };
    Err(std::io::Error::new(kind, format!("an injected failure of a {}", point.name())))
}
