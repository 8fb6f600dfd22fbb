//! Drawings as PNG and PDF, for where SVG cannot go. The fonts are part of the program, so a picture is the
//! same on every machine.

use super::drawing::Drawing;
use super::file::Theme;
#[cfg(feature = "png")]
use super::file::file;
#[cfg(feature = "png")]
use super::pdf_order::in_order;
#[cfg(feature = "png")]
use resvg::{tiny_skia, usvg};
use std::fmt;
#[cfg(feature = "png")]
use std::sync::Arc;

/// What there is instead of a picture where the feature `png` is not built in.
#[cfg(not(feature = "png"))]
const NOT_BUILT_IN: &str = "PNG and PDF are not built into this program (the feature `png`); write SVG, or \
build it with that feature";

/// DejaVu Sans, reduced to what charts need (fonts/LICENSE).
#[cfg(feature = "png")]
const FONTS: [&[u8]; 2] = [
    include_bytes!("../../fonts/DejaVuSans-subset.ttf"),
    include_bytes!("../../fonts/DejaVuSans-Bold-subset.ttf"),
];

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PngError {
    /// The drawing's title.
    pub drawing: String,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for PngError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the drawing “{}” does not become a picture: {}", self.drawing, self.what)
    }
}

impl std::error::Error for PngError {}

/// A drawing as PNG: as [`file()`] draws it, with `scale` pixels for each of its own.
///
/// # Errors
///
/// It is larger than memory allows, or this crate was built without the feature `png`.
#[cfg(feature = "png")]
pub fn png(drawing: &Drawing, width: f64, scale: f32, theme: Theme) -> Result<Vec<u8>, PngError> {
    let wrong = |what: String| PngError { drawing: drawing.title().to_owned(), what };
    let tree = tree(drawing, width, theme)?;
    let size = tree.size().to_int_size().scale_by(scale).ok_or_else(|| wrong("it has no size".to_owned()))?;
    let mut picture = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| wrong(format!("{} by {} pixels are too many", size.width(), size.height())))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(|why| wrong(why.to_string()))
}

/// A drawing as PDF, for papers: as [`file()`] draws it, a pixel being 1/96 inch. The same drawing is the
/// same file to the byte.
///
/// # Errors
///
/// It cannot be drawn, or this crate was built without the feature `png`.
#[cfg(feature = "png")]
pub fn pdf(drawing: &Drawing, width: f64, theme: Theme) -> Result<Vec<u8>, PngError> {
    let page = svg2pdf::PageOptions { dpi: 96.0 };
    let wrong = |what: String| PngError { drawing: drawing.title().to_owned(), what };
    let bytes = svg2pdf::to_pdf(&tree(drawing, width, theme)?, svg2pdf::ConversionOptions::default(), page)
        .map_err(|why| wrong(why.to_string()))?;
    in_order(&bytes).ok_or_else(|| wrong("its PDF cannot be put in order".to_owned()))
}

#[cfg(feature = "png")]
fn tree(drawing: &Drawing, width: f64, theme: Theme) -> Result<usvg::Tree, PngError> {
    usvg::Tree::from_str(&file(drawing, width, theme), &options())
        .map_err(|why| PngError { drawing: drawing.title().to_owned(), what: why.to_string() })
}

#[cfg(feature = "png")]
fn options() -> usvg::Options<'static> {
    let mut fonts = usvg::fontdb::Database::new();
    for font in FONTS {
        fonts.load_font_source(usvg::fontdb::Source::Binary(Arc::new(font)));
    }
    fonts.set_sans_serif_family("DejaVu Sans");
    usvg::Options {
        font_family: "DejaVu Sans".to_owned(),
        fontdb: Arc::new(fonts),
        ..usvg::Options::default()
    }
}

/// A drawing as PNG: not built in.
///
/// # Errors
///
/// Always: this crate was built without the feature `png`.
#[cfg(not(feature = "png"))]
pub fn png(drawing: &Drawing, _width: f64, _scale: f32, _theme: Theme) -> Result<Vec<u8>, PngError> {
    Err(PngError { drawing: drawing.title().to_owned(), what: NOT_BUILT_IN.to_owned() })
}

/// A drawing as PDF: not built in.
///
/// # Errors
///
/// Always: this crate was built without the feature `png`.
#[cfg(not(feature = "png"))]
pub fn pdf(drawing: &Drawing, width: f64, theme: Theme) -> Result<Vec<u8>, PngError> {
    png(drawing, width, 1.0, theme)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(not(feature = "png"))]
    fn missing_features_are_reported() {
        let drawing = crate::chart::pingexp("a drawing", "nothing", &[], crate::chart::SeriesStyle::Dots);
        let error = super::png(&drawing, 100.0, 1.0, super::Theme::Light).expect_err("no PNG");
        assert!(error.to_string().contains("not built into this program"), "{error}");
    }

    /// What readers of PDF need: the head, the end, and a page of the drawing's size in points.
    #[test]
    #[cfg(feature = "png")]
    fn a_pdf_is_as_wide_as_a_column() {
        let drawing = crate::chart::pingexp("a drawing", "nothing", &[], crate::chart::SeriesStyle::Dots);
        let pdf = super::pdf(&drawing, 320.0, super::Theme::Light).expect("a PDF");
        let text = String::from_utf8_lossy(&pdf);
        assert!(text.starts_with("%PDF-") && text.trim_end().ends_with("%%EOF"));
        assert!(text.contains("/MediaBox"), "{text}");
        // Hash maps have another order each time.
        for _ in 0..16 {
            assert!(super::pdf(&drawing, 320.0, super::Theme::Light).is_ok_and(|again| again == pdf));
        }
    }
}
