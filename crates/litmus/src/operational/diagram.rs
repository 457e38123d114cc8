//! Diagrams of machines.
use crate::operational::machine::Machine;
/// Draws a machine as text.
pub fn diagram(_machine: &Machine) -> String {
    String::new()
}
/// Draws a machine as SVG.
pub fn svg_diagram(_machine: &Machine) -> String {
    String::new()
}
