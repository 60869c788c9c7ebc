//! The figures as a table for people and as JSON for programs.

use serde_json::{Value, json};

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The group.
    pub(crate) group: &'static str,
    /// What was measured.
    pub(crate) what: String,
    /// The figure, in `unit`.
    pub(crate) figure: f64,
    /// `x` for a ratio to the peer, else `ms`, `µs`, `MB`, `KB`.
    pub(crate) unit: &'static str,
    /// What the figure may be; `None` where nothing was promised.
    pub(crate) at_most: Option<f64>,
    /// What the figure was made from, and the peer's name.
    pub(crate) from: String,
}

impl Row {
    /// `met`, `MISSED`, or nothing where nothing was promised.
    fn verdict(&self) -> &'static str {
        match self.at_most {
            None => "",
            Some(most) if self.figure <= most => "met",
            Some(_) => "MISSED",
        }
    }
}

/// The table, one line for each figure.
pub(crate) fn text(rows: &[Row]) -> String {
    let cells: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            let most = row.at_most.map_or(String::new(), |most| format!("<= {}", number(most)));
            let figure = format!("{} {}", number(row.figure), row.unit);
            [format!("{}: {}", row.group, row.what), figure, most, row.verdict().to_owned(), row.from.clone()]
        })
        .collect();
    let width = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let mut table = String::new();
    for [what, figure, most, verdict, from] in &cells {
        table += &format!(
            "{what:w0$}  {figure:>w1$}  {most:w2$}  {verdict:w3$}  {from}\n",
            w0 = widths[0],
            w1 = widths[1],
            w2 = widths[2],
            w3 = widths[3],
        );
    }
    table
}

/// Three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// All of it for `target/bench.json`.
pub(crate) fn json(rows: &[Row], rounds: usize) -> String {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "group": row.group, "what": row.what, "figure": row.figure, "unit": row.unit,
                "at_most": row.at_most, "met": row.at_most.map(|most| row.figure <= most), "from": row.from,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "rounds": rounds, "figures": rows }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: f64, at_most: Option<f64>) -> Row {
        Row { group: "g", what: "w".to_owned(), figure, unit: "x", at_most, from: "1 to 2".to_owned() }
    }

    #[test]
    fn a_figure_is_met_missed_or_neither() {
        assert_eq!(row(0.7, Some(0.7)).verdict(), "met");
        assert_eq!(row(0.71, Some(0.7)).verdict(), "MISSED");
        assert_eq!(row(f64::NAN, Some(0.7)).verdict(), "MISSED");
        assert_eq!(row(9.0, None).verdict(), "");
    }

    #[test]
    fn the_table_lines_up() {
        let mut long = row(1234.5, None);
        long.what = "something longer".to_owned();
        let table = text(&[row(0.0512, Some(1.0)), long]);
        assert_eq!(
            table,
            "g: w                 0.051 x  <= 1.00  met  1 to 2\ng: something longer   1234 x                1 to 2\n"
        );
    }

    #[test]
    fn programs_get_the_same_figures() {
        let json: Value = serde_json::from_str(&json(&[row(0.8, Some(0.7)), row(1.0, None)], 5)).unwrap();
        assert_eq!(json["rounds"], 5);
        assert_eq!(json["figures"][0]["met"], false);
        assert_eq!(json["figures"][1]["met"], Value::Null);
    }
}
