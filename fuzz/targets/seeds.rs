//! Writes the seeds of each target: `seeds REPOSITORY FOLDER` creates inputs in `FOLDER/TARGET`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

// Library called by instrumented code.
use libfuzzer_sys as _;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [repository, folder] = &arguments[..] else {
        return Err("usage: seeds REPOSITORY FOLDER".into());
    };
    let mut count = 0;
    for (target, seeds) in consistory_properties::seeds::seeds(repository)? {
        let folder: &Path = &folder.join(target);
        fs::create_dir_all(folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("{number:04}")), seed)?;
        }
        count += seeds.len();
    }
    println!("{count} seeds");
    Ok(())
}
