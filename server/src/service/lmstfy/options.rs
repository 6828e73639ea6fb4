use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

/// The API of lmstfy, for its clients.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "lmstfy")]
pub(crate) struct LmstfyOptions {
    /// Where to listen for clients of lmstfy, as in 127.0.0.1:7777; nowhere unless given
    #[arg(long = "lmstfy", value_name = "HOST:PORT", env = "DELAYLINE_LMSTFY")]
    pub(crate) lmstfy: Option<String>,
    /// Where to listen for administrators of lmstfy, as in 127.0.0.1:7778; nowhere unless given
    #[arg(long, value_name = "HOST:PORT", env = "DELAYLINE_LMSTFY_ADMIN")]
    pub(crate) lmstfy_admin: Option<String>,
    /// Ask clients of lmstfy for no token, as its flag -sv does: on loopback, or with --insecure
    #[arg(
        long,
        value_name = "BOOL",
        env = "DELAYLINE_LMSTFY_OPEN",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    pub(crate) lmstfy_open: bool,
    /// Who may administer tokens and limits of lmstfy: a name, and the file of the password; more with commas, and anybody
    /// who reaches the listener unless given
    #[arg(long, value_name = "NAME:FILE", value_delimiter = ',', env = "DELAYLINE_LMSTFY_ACCOUNT")]
    pub(crate) lmstfy_account: Vec<String>,
}
