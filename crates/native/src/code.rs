//! Machine code in memory, and the call into it.
//!
//! This is the only module with `unsafe`. It is sound because the bytes come from this crate's
//! assemblers: their code reads and writes only the cells and registers that a call passes and its
//! own stack, and it returns. [`Code::call`] checks that a call passes enough cells and registers.

#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::AtomicI64;

/// The code of a thread, ready to be called.
#[derive(Debug)]
pub(crate) struct Code {
    pages: pages::Pages,
    cells: usize,
    registers: usize,
}

impl Code {
    /// Puts code that was assembled for this processor into executable memory. Its calls must pass
    /// `cells` cells and `registers` registers.
    pub(crate) fn new(bytes: &[u8], cells: usize, registers: usize) -> io::Result<Code> {
        Ok(Code { pages: pages::Pages::new(bytes)?, cells, registers })
    }

    /// Runs the thread once on these cells and registers.
    #[inline]
    pub(crate) fn call(&self, cells: &[&AtomicI64], registers: &mut [i64]) {
        assert!(cells.len() >= self.cells && registers.len() >= self.registers);
        // SAFETY: the pages hold a whole function of this signature for this processor, made by
        // our assembler, and stay mapped and executable as long as `self`. A reference is a
        // pointer, so `cells` is the array of pointers that it expects. It reads and writes words
        // through the first `self.cells` of them, which atomics allow while they are shared, and
        // through the first `self.registers` of `registers`, which are borrowed mutably.
        unsafe {
            let function: extern "C" fn(*const &AtomicI64, *mut i64) =
                std::mem::transmute(self.pages.start());
            function(cells.as_ptr(), registers.as_mut_ptr());
        }
    }
}

#[cfg(target_os = "linux")]
mod pages {
    use std::ffi::c_void;
    use std::io;
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    /// Executable memory.
    #[derive(Debug)]
    pub(super) struct Pages {
        start: NonNull<c_void>,
        length: usize,
    }

    // SAFETY: `Pages` is immutable after `new`, so threads can share it.
    unsafe impl Send for Pages {}
    // SAFETY: as above.
    unsafe impl Sync for Pages {}

    impl Pages {
        pub(super) fn new(bytes: &[u8]) -> io::Result<Pages> {
            let length = bytes.len().max(1);
            // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing.
            let start = unsafe {
                mmap_anonymous(
                    null_mut(),
                    length,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE,
                )?
            };
            let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
            let pages = Pages { start, length };
            // SAFETY: nothing else uses the mapping, which is writable and at least as long as the
            // bytes. From then on it is only read and executed, and no reference to it exists.
            unsafe {
                start.as_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                mprotect(start.as_ptr(), length, MprotectFlags::READ | MprotectFlags::EXEC)?;
            }
            pages.synchronize();
            Ok(pages)
        }

        pub(super) fn start(&self) -> *const c_void {
            self.start.as_ptr()
        }

        /// Makes written code visible to instruction fetches, on processors that do not do so
        /// themselves.
        #[cfg(target_arch = "aarch64")]
        fn synchronize(&self) {
            // The smallest cache line that any such processor has.
            const LINE: usize = 16;
            let lines = (self.start.as_ptr() as usize..).step_by(LINE);
            let lines = || lines.clone().take(self.length.div_ceil(LINE));
            // SAFETY: cache maintenance on addresses of our own mapping changes no memory.
            unsafe {
                for line in lines() {
                    std::arch::asm!("dc cvau, {}", in(reg) line);
                }
                std::arch::asm!("dsb ish");
                for line in lines() {
                    std::arch::asm!("ic ivau, {}", in(reg) line);
                }
                std::arch::asm!("dsb ish", "isb");
            }
        }

        #[cfg(not(target_arch = "aarch64"))]
        fn synchronize(&self) {}
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            // SAFETY: this is the mapping that `new` made, and no pointer into it is left. If it
            // cannot be unmapped, it stays, which does no harm.
            unsafe {
                let _ = munmap(self.start.as_ptr(), self.length);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod pages {
    use std::ffi::c_void;
    use std::io;

    /// Executable memory, which is not supported on this system.
    #[derive(Debug)]
    pub(super) enum Pages {}

    impl Pages {
        pub(super) fn new(_: &[u8]) -> io::Result<Pages> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn start(&self) -> *const c_void {
            match *self {}
        }
    }
}
