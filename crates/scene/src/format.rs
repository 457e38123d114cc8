//! The formats of pictures.

use crate::{Scene, dot, order_view, svg, text};

/// Width of a picture as text, in columns.
const TEXT_COLUMNS: usize = 100;

/// A format that a picture can be written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PictureFormat {
    /// SVG, for browsers and documents.
    #[default]
    Svg,
    /// Graphviz's language.
    Dot,
    /// Plain text of at most 100 columns.
    Text,
}

impl PictureFormat {
    /// Returns the file extension of this format.
    pub fn extension(self) -> &'static str {
        match self {
            PictureFormat::Svg => "svg",
            PictureFormat::Dot => "dot",
            PictureFormat::Text => "txt",
        }
    }

    /// Draws the order view of a scene.
    pub fn draw(self, scene: &Scene) -> String {
        match self {
            PictureFormat::Svg => svg(scene, &order_view(scene)),
            PictureFormat::Dot => dot(scene),
            PictureFormat::Text => text(scene, TEXT_COLUMNS),
        }
    }
}
