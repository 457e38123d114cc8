//! Traverses folders.

use std::fs;
use std::path::{Path, PathBuf};

use crate::read::ReadError;

/// An entry found by a traversal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry<'a> {
    /// A folder; a link to a folder is a file.
    Folder(&'a Path),
    /// Any other file.
    File(&'a Path),
}

/// Whether to traverse a folder; ignored for files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Descend {
    /// Visit the entries of the folder.
    Yes,
    /// Skip the folder.
    No,
}

/// Visits a folder and everything below it, in the order of names.
///
/// Links are not followed, so that every traversal ends.
pub fn walk(folder: &Path, mut visit: impl FnMut(Entry<'_>) -> Descend) -> Result<(), ReadError> {
    // Entries still to be visited, the next one last.
    let mut pending = vec![(folder.to_path_buf(), true)];
    while let Some((path, is_folder)) = pending.pop() {
        let entry = if is_folder { Entry::Folder(&path) } else { Entry::File(&path) };
        if visit(entry) == Descend::No || !is_folder {
            continue;
        }
        let failed = |error| ReadError::Io { path: path.clone(), error };
        let mut entries = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            entries.push((entry.path(), entry.file_type().map_err(failed)?.is_dir()));
        }
        entries.sort_unstable();
        pending.extend(entries.into_iter().rev());
    }
    Ok(())
}

/// Returns the files in a folder and its subfolders that satisfy `wanted`, in the order of names.
pub fn files_below(
    folder: &Path,
    mut wanted: impl FnMut(&Path) -> bool,
) -> Result<Vec<PathBuf>, ReadError> {
    let mut found = Vec::new();
    walk(folder, |entry| {
        if let Entry::File(path) = entry
            && wanted(path)
        {
            found.push(path.to_path_buf());
        }
        Descend::Yes
    })?;
    Ok(found)
}
