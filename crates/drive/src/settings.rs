//! A system's settings, as `name=value` pairs.

use crate::error::DriveError;

/// A setting of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The name.
    pub name: &'static str,
    /// The possible values, the default first.
    pub values: &'static [&'static str],
    /// A description of its effect.
    pub about: &'static str,
}

/// The chosen values of a system's settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    known: &'static [Setting],
    chosen: Vec<&'static str>,
}

impl Settings {
    /// Parses `name=value` pairs; settings that are not given have their defaults.
    pub fn parse(
        system: &str,
        known: &'static [Setting],
        pairs: &[String],
    ) -> Result<Settings, DriveError> {
        let mut chosen: Vec<&'static str> = known.iter().map(|setting| setting.values[0]).collect();
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(at) = known.iter().position(|setting| setting.name == name) else {
                let names: Vec<&str> = known.iter().map(|setting| setting.name).collect();
                return Err(DriveError::Malformed(match names.is_empty() {
                    true => format!("{system} has no settings"),
                    false => {
                        format!("{system} has no setting `{name}`; it has {}", names.join(", "))
                    }
                }));
            };
            let values = known[at].values;
            chosen[at] = values.iter().find(|known| **known == value).ok_or_else(|| {
                DriveError::Malformed(format!(
                    "`{name}` of {system} is one of {}, not `{value}`",
                    values.join(", ")
                ))
            })?;
        }
        Ok(Settings { known, chosen })
    }

    /// Returns the value of a setting, which must exist.
    pub fn get(&self, name: &str) -> &'static str {
        let at = self.known.iter().position(|setting| setting.name == name);
        self.chosen[at.expect("systems ask for settings that they list")]
    }

    /// Formats all settings.
    pub fn show(&self) -> String {
        let pairs: Vec<String> = (self.known.iter().zip(&self.chosen))
            .map(|(setting, value)| format!("{}={value}", setting.name))
            .collect();
        pairs.join(" ")
    }
}
