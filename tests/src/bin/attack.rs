//! Attacks `serve`, one attack after the other, and prints a table.
//!
//!     cargo run --release -p delayline-tests --bin attack -- --serve target/release/delayline --seconds 60 [--tls]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use delayline_tests::attack::{self, Attack, Options, Report, Security};
use delayline_tests::raise_descriptors;

/// How long the good client's requests may take, but for one in a hundred.
const P99: Duration = Duration::from_millis(50);

/// Attacks a service and says what a good client beside it saw.
#[derive(Parser)]
struct Arguments {
    /// The program whose `serve` is attacked
    #[arg(long, value_name = "PROGRAM")]
    serve: PathBuf,
    /// How long each attack lasts
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many descriptors the service may open
    #[arg(long, value_delimiter = ',', default_values_t = [1_024, 65_536])]
    descriptors: Vec<u64>,
    /// Only one in so many attackers
    #[arg(long, default_value_t = 1)]
    part: usize,
    /// Attack by TLS, with a certificate that is made for it
    #[arg(long)]
    tls: bool,
    /// Let nobody in without this token, of 32 characters or more, which the attackers show too
    #[arg(long)]
    token: Option<String>,
    /// Which attacks; all of them if none is named
    #[arg(value_enum)]
    attacks: Vec<Attack>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { serve, seconds, descriptors, part, tls, token, attacks } = Arguments::parse();
    let security = Security { tls, token };
    let attacks = if attacks.is_empty() { Attack::all().to_vec() } else { attacks };
    let own = raise_descriptors();
    println!("the attackers have {own} descriptors\n{}", Report::HEAD);
    let mut wrong = Vec::new();
    for descriptors in descriptors {
        let length = Duration::from_secs(seconds);
        let options = Options {
            program: serve.clone(),
            descriptors,
            length,
            part: part.max(1),
            security: security.clone(),
        };
        for attack in &attacks {
            let report = attack::run(*attack, &options).await;
            println!("{report}");
            let slow = report.slower_than(P99);
            wrong.extend(report.wrong().into_iter().chain(slow).map(|what| format!("{attack:?}: {what}")));
        }
    }
    for what in &wrong {
        println!("{what}");
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
