//! Durations and sizes in the notation of the command line.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Parses a duration such as `500ms`, `30s`, `2m`, `1h`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "" | "s" => number,
        "ms" => number / 1e3,
        "us" | "µs" => number / 1e6,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(format!("`{unit}` is not a unit of time; use ms, s, m or h")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| "the duration is out of range".to_owned())
}

/// Formats a duration in a suitable unit, such as `420 µs`, `1.5 ms`, `2.0 s` or `3 min 20 s`.
pub(crate) fn shown_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        ..0.000_999_5 => format!("{:.0} µs", seconds * 1e6),
        ..0.999_5 => format!("{:.1} ms", seconds * 1e3),
        ..99.95 => format!("{seconds:.1} s"),
        _ => {
            let whole = seconds.round() as u64;
            match (whole / 3600, whole / 60 % 60, whole % 60) {
                (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
                (hours, minutes, _) => format!("{hours} h {minutes} min"),
            }
        }
    }
}

/// Parses a size such as `512MiB`, `4GiB`, `2G`; a bare number is bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "tb" => 1e12,
        _ => return Err(format!("`{unit}` is not a unit of size; use KiB, MiB or GiB")),
    };
    let bytes = number * factor;
    if bytes < 1.0 || bytes > u64::MAX as f64 {
        return Err("the size is out of range".to_owned());
    }
    Ok(bytes as u64)
}

/// Parses a number or an inclusive range such as `2..6`.
pub(crate) fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |text: &str| {
        text.trim().parse::<u32>().map_err(|_| format!("`{text}` is not a number; write 4 or 2..6"))
    };
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    Ok(number(first)?..=number(last.trim_start_matches('='))?)
}

/// Parses a number of keys and the share of the operations that they get, such as `5:80%`.
pub(crate) fn hot_keys(text: &str) -> Result<(u32, f64), String> {
    let (keys, rest) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` has no `:`; write the keys and their share, 5:80%"))?;
    let keys = keys.parse().map_err(|_| format!("`{keys}` is not a number of keys"))?;
    Ok((keys, share(rest)?))
}

/// Parses a share from 0 to 1, also as a percentage.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let share = match unit {
        "" => number,
        "%" => number / 100.0,
        _ => return Err(format!("`{unit}` is not a unit of a share; write 0.5 or 50%")),
    };
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err("a share is between 0 and 1".to_owned())
    }
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse().map_err(|_| "it does not start with a number".to_owned())?;
    Ok((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_as_people_mean_them() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        assert!(duration("soon").is_err() && duration("3 weeks").is_err());
        assert_eq!(size("4GiB"), Ok(4 << 30));
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("10MB"), Ok(10_000_000));
        assert!(size("0").is_err() && size("-1").is_err() && size("1e99").is_err());
        assert_eq!(share("50%"), Ok(0.5));
        assert!(share("1.5").is_err());
    }
}
