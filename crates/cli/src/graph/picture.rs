//! The boxes as a picture.

use super::lead::Lead;
use super::model::{Box, Device, Model};
use super::options::By;
use super::used::Used;
use tidegate_report::chart::{self, COLOURS, Legend, TreeBox, TreeEdge};
use tidegate_report::rate;

/// Pixels; the picture has its own width anyway.
const WIDTH: f64 = 1000.0;

/// The picture of a policy; with a trial's figures coloured by them.
pub(super) fn svg(name: &str, model: &Model, used: Option<&Used>, by: By) -> String {
    let mut nodes = Vec::new();
    let mut roots = Vec::new();
    for device in &model.devices {
        let root = nodes.len();
        roots.push(root);
        nodes.push(TreeBox {
            name: device.name.clone(),
            aside: device.note.split(',').next().unwrap_or_default().to_owned(),
            ..TreeBox::default()
        });
        let mut leaves = 0;
        for (at, one) in device.boxes.iter().enumerate() {
            let childless = device.boxes.iter().all(|other| other.parent != Some(at));
            leaves += usize::from(childless && one.is_class);
            let colour = (childless && one.is_class && used.is_none()).then(|| (leaves - 1) % COLOURS + 1);
            let parent = Some(one.parent.map_or(root, |parent| root + 1 + parent));
            nodes.push(TreeBox { parent, colour, ..boxed(device, one, used, by) });
        }
    }
    let place = |name: &str| model.devices.iter().position(|device| device.name == name).map(|at| roots[at]);
    let links: Vec<TreeEdge> = model
        .redirects
        .iter()
        .filter_map(|r| Some(TreeEdge { from: place(&r.from)?, to: place(&r.to)?, text: r.what.clone() }))
        .collect();
    let legend = used.map(|used| legend(used, by));
    let count = nodes.len();
    let description = format!(
        "{} devices, {count} boxes. Children are drawn below and to the right of their parent.",
        roots.len()
    );
    chart::forest(name, &description, &nodes, &links, legend.as_ref()).alone(WIDTH)
}

fn boxed(device: &Device, one: &Box, used: Option<&Used>, by: By) -> TreeBox {
    let measured = used.and_then(|used| used.of(device, one));
    let mut lines = Vec::new();
    match one.rates() {
        Some(rates) => lines.push(rates),
        None if one.is_class && !one.words.trim().is_empty() => lines.push(one.words.trim().to_owned()),
        None => {}
    }
    lines.extend(one.leaf.iter().map(|leaf| format!("→ {leaf}")));
    if let Some(figures) = measured {
        let dropped =
            if figures.dropped > 0 { format!(", {} dropped", figures.dropped) } else { String::new() };
        lines.push(format!("sent {}{dropped}", rate(figures.sent)));
    }
    let sure = one
        .rate
        .zip(one.ceil)
        .filter(|(_, ceil)| ceil.0 > 0)
        .map(|(rate, ceil)| rate.0 as f64 / ceil.0 as f64);
    let heat = measured.and_then(|figures| match by {
        By::Load => figures.share,
        By::Drops => {
            let most = used.map_or(0, Used::most_dropped);
            Some(figures.dropped as f64 / most.max(1) as f64)
        }
    });
    TreeBox {
        name: one.name(),
        aside: one.prio.filter(|prio| *prio > 0).map_or(String::new(), |prio| format!("prio {prio}")),
        lines,
        load: measured.and_then(|figures| figures.share).map(|share| (share, sure)),
        filters: one.leads.iter().flat_map(Lead::lines).cloned().collect(),
        heat,
        ..TreeBox::default()
    }
}

fn legend(used: &Used, by: By) -> Legend {
    let title = &used.run().title;
    match by {
        By::Load => Legend {
            words: format!(
                "share of its ceiling that it sent, while {title}; the tick is its guaranteed rate"
            ),
            low: "0 %".into(),
            high: "100 %".into(),
        },
        By::Drops => Legend {
            words: format!("packets it dropped, while {title}"),
            low: "0".into(),
            high: used.most_dropped().to_string(),
        },
    }
}
