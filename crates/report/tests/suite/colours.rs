//! The colours of classes that lie on each other stay apart for people who see fewer of them.

use tidegate_report::chart::{COLOURS, LOOKS, Look, OTHERS, STYLE};

type Rgb = [f64; 3];

/// What is left of a colour in linear light when one kind of cone is missing (Machado, Oliveira, Fernandes
/// 2009, severity 1).
const EYES: [(&str, [Rgb; 3]); 4] = [
    ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    ),
    (
        "deuteranopia",
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    ),
    (
        "tritanopia",
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    ),
];

/// A variable's colour in a part of the style sheet, in linear light.
fn colour(style: &str, name: &str) -> Rgb {
    let start =
        style.find(&format!("--{name}:#")).unwrap_or_else(|| panic!("no colour {name}")) + name.len() + 4;
    let channel = |n: usize| {
        let value =
            u8::from_str_radix(&style[start + 2 * n..start + 2 * n + 2], 16).expect("a hexadecimal colour");
        let value = f64::from(value) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    [channel(0), channel(1), channel(2)]
}

fn times(matrix: &[Rgb; 3], v: Rgb) -> Rgb {
    [0, 1, 2].map(|n| matrix[n].iter().zip(v).map(|(a, b)| a * b).sum())
}

/// OKLab (Ottosson 2020): distances in it are as large as they look.
fn oklab(rgb: Rgb) -> Rgb {
    let cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ];
    let lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ];
    times(&lab, times(&cones, rgb).map(|cone| cone.max(0.0).cbrt()))
}

fn distance(eye: &[Rgb; 3], a: Rgb, b: Rgb) -> f64 {
    let seen = |colour| oklab(times(eye, colour).map(|light| light.clamp(0.0, 1.0)));
    seen(a).iter().zip(seen(b)).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn neighbours_are_distinguished() {
    // In OKLab 0.02 is a difference one just sees; areas beside each other have a line between them and names
    // besides.
    const APART: f64 = 0.07;
    let (light, dark) = STYLE.split_once("@media").expect("light colours, then dark ones");
    let mut pairs: Vec<(String, String)> =
        (1..COLOURS).map(|n| (format!("c{n}"), format!("c{}", n + 1))).collect();
    pairs.push((format!("c{COLOURS}"), format!("c{OTHERS}")));
    pairs.push(("with".into(), "without".into()));
    // Lines of things compared cross each other: those with the same dashes are distinguished by colour
    // alone, and dots have no dashes.
    let looks = (0..LOOKS).flat_map(|a| (0..a).map(move |b| (Look(a), Look(b))));
    let alike = looks.filter(|(a, b)| a.dashes() == b.dashes() || a.0.max(b.0) < 4);
    pairs.extend(alike.map(|(a, b)| (format!("c{}", a.colour()), format!("c{}", b.colour()))));
    let mut close = Vec::new();
    for (theme, style) in [("light", light), ("dark", dark)] {
        for (eyes, matrix) in &EYES {
            for (a, b) in &pairs {
                let apart = distance(matrix, colour(style, a), colour(style, b));
                if apart < APART {
                    close.push(format!("{theme}, {eyes}: {a} and {b} are {apart:.3} apart"));
                }
            }
        }
    }
    assert!(close.is_empty(), "{close:#?}");
}
