use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use plotters::prelude::{
    BLACK, ChartBuilder, Color, EmptyElement, IntoDrawingArea, PathElement, RGBColor, Rectangle, SVGBackend,
    Text, WHITE,
};
use plotters::style::IntoFont;

use super::report::{Report, Row, shown};

const WIDTH: u32 = 840;
const BAR: u32 = 34;
/// What is above and below the bars.
const FRAME: u32 = 110;
const LABELS: u32 = 230;
/// How much longer than the longest bar the axis is, for what stands behind it.
const ROOM: f64 = 1.45;
const FONT: &str = "sans-serif";
/// One for each that is compared.
const COLOURS: [RGBColor; 3] = [RGBColor(37, 99, 155), RGBColor(214, 130, 52), RGBColor(120, 120, 120)];

/// Draws each figure of a report into a file of its own: a bar for a median, a line for the range in which it is, and answers
/// which files these are.
pub fn draw(report: &Report, folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let mut figures: Vec<&str> = Vec::new();
    for row in &report.rows {
        if !figures.contains(&row.figure.as_str()) {
            figures.push(&row.figure);
        }
    }
    let drawn = figures.into_iter().map(|figure| {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.figure == figure).collect();
        let path = folder.join(format!("{}-{}.svg", report.bench, file_name(figure)));
        bars(report, figure, &rows, &path)?;
        Ok(path)
    });
    drawn.collect()
}

fn bars(report: &Report, figure: &str, rows: &[&Row], path: &Path) -> Result<(), Box<dyn Error>> {
    let count = u32::try_from(rows.len())?;
    let root = SVGBackend::new(path, (WIDTH, FRAME + BAR * count)).into_drawing_area();
    root.fill(&WHITE)?;
    let most = rows.iter().map(|row| row.value.high).fold(f64::MIN_POSITIVE, f64::max);
    let Report { bench, server, profile, .. } = report;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{bench}: {figure} ({server}, {profile})"), (FONT, 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(LABELS)
        .build_cartesian_2d(0.0..most * ROOM, 0.0..f64::from(count))?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .max_light_lines(1)
        .x_labels(5)
        .x_label_formatter(&|value| format!("{value}"))
        .x_desc(figure)
        .draw()?;
    let mut ofs: Vec<&str> = Vec::new();
    for row in rows {
        if !ofs.contains(&row.of.as_str()) {
            ofs.push(&row.of);
        }
    }
    for (at, row) in (0_u32..).zip(rows.iter().rev()) {
        let low = f64::from(at);
        let which = ofs.iter().position(|of| *of == row.of).unwrap_or_default();
        let colour = COLOURS[which % COLOURS.len()];
        let (value, middle) = (row.value, low + 0.5);
        chart.draw_series([Rectangle::new(
            [(0.0, low + 0.18), (value.median, low + 0.82)],
            colour.filled(),
        )])?;
        chart.draw_series([PathElement::new(
            [(value.low, middle), (value.high, middle)],
            BLACK.stroke_width(2),
        )])?;
        let name = if ofs.len() > 1 { format!("{}, {}", row.case, row.of) } else { row.case.clone() };
        let font = (FONT, 14).into_font();
        let left = i32::try_from(LABELS)? - 4;
        chart.draw_series([EmptyElement::at((0.0, middle)) + Text::new(name, (-left, -7), font.clone())])?;
        let end = value.high.max(value.median);
        chart.draw_series([EmptyElement::at((end, middle)) + Text::new(shown(value), (6, -7), font)])?;
    }
    root.present()?;
    Ok(())
}

/// Letters and digits, with hyphens between.
fn file_name(figure: &str) -> String {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { ' ' };
    let text: String = figure.replace('µ', "u").chars().map(plain).collect();
    text.split_whitespace().collect::<Vec<_>>().join("-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_has_no_signs() {
        assert_eq!(file_name("µs of Redis a job"), "us-of-redis-a-job");
        assert_eq!(file_name("jobs/s"), "jobs-s");
    }
}
