//! Prints what a queue does to two uploads and a call over QUIC.

fn main() {
    let commands = std::env::args().nth(1).unwrap_or_else(|| "qdisc add dev eth0 root fq_codel".into());
    match tidegate_quic_example::run(&commands, 10) {
        Ok(report) => println!("{report}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
