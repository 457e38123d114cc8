//! Runs every target on its seeds, and on seeds changed at random: the same inputs in every run.

use std::panic::catch_unwind;
use std::path::Path;
use std::sync::LazyLock;

use consistory_properties::seeds::{Seeds, seeds};
use consistory_properties::targets;
use consistory_random::QuickRandom;

/// Largest number of bytes of a changed input.
const MAX_BYTES: usize = 4096;

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    seeds(&repository).expect("the corpus can be read")
});

/// Returns the number of changed inputs per target.
fn runs() -> usize {
    if std::env::var_os("CONSISTORY_DEEP").is_some() { 200_000 } else { 20_000 }
}

/// Runs a target on at most as many unchanged seeds as changed ones, and on the changed ones.
fn search(target: &str, run: fn(&[u8])) {
    let seeds = &SEEDS[target];
    let mut random = QuickRandom::new(seeds.len() as u64);
    let stride = seeds.len().div_ceil(runs());
    seeds.iter().step_by(stride).for_each(|seed| attempt(target, run, seed));
    for _ in 0..runs() {
        attempt(target, run, &changed(seeds, &mut random));
    }
}

/// Runs a target on one input; on a failure, prints the input.
fn attempt(target: &str, run: fn(&[u8]), input: &[u8]) {
    if catch_unwind(|| run(input)).is_err() {
        panic!("`{target}` does not hold for the input b\"{}\"", input.escape_ascii());
    }
}

/// Returns a seed with a few random changes.
fn changed(seeds: &[Vec<u8>], random: &mut QuickRandom) -> Vec<u8> {
    let mut input = seeds[random.below(seeds.len())].clone();
    input.truncate(MAX_BYTES);
    for _ in 0..1 + random.below(4) {
        let place = random.below(input.len() + 1);
        let end = place + random.below(1 + (input.len() - place).min(32));
        match random.below(6) {
            0 => input.insert(place, random.below(256) as u8),
            1 => drop(input.drain(place..end)),
            2 => input.splice(place..place, input[place..end].to_vec()).for_each(drop),
            3 if place < input.len() => input[place] = random.below(256) as u8,
            4 if place < input.len() => input[place] ^= 1 << random.below(8),
            // The rest is taken from another seed.
            _ => {
                let other = &seeds[random.below(seeds.len())];
                input.truncate(place);
                input.extend(&other[random.below(other.len() + 1)..]);
            }
        }
        input.truncate(MAX_BYTES);
    }
    input
}

#[test]
fn histories_are_unchanged_after_writing_and_reading() {
    search("formats", targets::formats::run);
}

#[test]
fn definitions_are_read_and_evaluated() {
    search("definitions", targets::definitions::run);
}

#[test]
fn litmus_tests_are_unchanged_after_writing_and_reading() {
    search("litmus", targets::litmus::run);
}

#[test]
fn texts_made_of_words_are_read() {
    search("words", targets::words::run);
}

#[test]
fn deciders_and_definitions_agree() {
    search("check", targets::check::run);
}

#[test]
fn accepted_certificates_are_true() {
    search("certificates", targets::certificates::run);
}

#[test]
fn certificates_are_unchanged_after_writing_and_reading() {
    search("certificate_json", targets::certificate_json::run);
}
