//! Random programs of the threads of a round, determined by a seed.

use consistory_random::Random;

use crate::cpu::CpuOptions;

/// The kind of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    Read,
    Write,
    Rmw,
    Fence,
}

/// A step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) deed: Deed,
    pub(crate) variable: u32,
    /// The value to write; no other step of the round writes it.
    pub(crate) value: u64,
}

/// Fills `steps` with the program of a thread in a round. Returns how long the thread waits before
/// it starts.
pub(crate) fn write_program(
    options: &CpuOptions,
    round: u64,
    thread: u32,
    steps: &mut Vec<Step>,
) -> u32 {
    let stream = round.wrapping_mul(u64::from(options.threads)).wrapping_add(thread.into());
    let mut random = Random::new(options.seed, stream);
    let mut below = |bound: u32| random.below(bound);
    let share = |share: f64| (share * f64::from(u32::MAX)) as u32;
    let fences = share(options.fence_share);
    let rmws = fences.saturating_add(share(options.rmw_share));
    let reads = share(options.read_share);
    steps.clear();
    for index in 0..options.operations {
        let kind = below(u32::MAX);
        let deed = if kind < fences {
            Deed::Fence
        } else if kind < rmws {
            Deed::Rmw
        } else if below(u32::MAX) < reads {
            Deed::Read
        } else {
            Deed::Write
        };
        let value = u64::from(thread) * u64::from(options.operations) + u64::from(index) + 1;
        steps.push(Step { deed, variable: below(options.variables), value });
    }
    match options.skew {
        0 => 0,
        skew => below(skew),
    }
}
