use std::sync::Arc;

use clap::{Args, Subcommand};
use delayline_http::{Scope, Time, Written};
use delayline_tokio::Span;
use serde_json::json;

use crate::cli::print;
use crate::cli::redis::Redis;
use crate::cli::table::{Align, Table};
use crate::failure::Failure;
use crate::service::rate::RateLimit;
use crate::service::registry::{Kind, Registry};
use crate::service::tokens::{self, Made, NewToken, QueuePattern, ShownToken, TokenLimits, now};

/// Makes, lists, rotates and revokes the tokens that the service lets in.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
As soon as there is a token, every service on this Redis lets in nobody without one, within 5 s. Redis keeps the SHA-256 of
a token, and its text is printed once. A service in memory has its tokens over HTTP alone: POST /v1/tokens.

Examples:
  delayline token create --scope admin --scope read --description 'ann, on call'
  delayline token create --scope publish --queue 'shop~*' --expires-in 90d
  delayline token list")]
pub struct Token {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// Make a token, and print it: it is not shown again
    #[command(after_help = "\
publish: publishing, cancelling and rescheduling jobs; consume: taking jobs and settling them; read: looking at jobs, queues
and metrics; admin: changing queues, dead letters and tokens. A pattern is a queue, alone or as namespace~queue, in which *
stands for any characters and ? for one; * alone is every queue of the default namespace, shop~* every queue of shop.

Examples:
  delayline token create --scope publish --requests '100/s burst 200'
  delayline token create --scope consume --queue orders --queue 'orders-*' --description 'worker of orders'
  delayline token create --scope publish --scope consume --namespace shop --expires-in 90d --json")]
    Create {
        /// What it may be used for: publish, consume, read or admin; may be repeated
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',')]
        scopes: Vec<Scope>,
        /// Which queues it is for; all of them unless given; may be repeated
        #[arg(long = "queue", value_name = "PATTERN", value_delimiter = ',')]
        queues: Vec<QueuePattern>,
        /// A namespace whose queues it is for: the same as --queue 'NAMESPACE~*'; may be repeated
        #[arg(long = "namespace", value_name = "NAMESPACE", value_delimiter = ',')]
        namespaces: Vec<String>,
        /// When it ends, from now; never unless given
        #[arg(long, value_name = "TIME")]
        expires_in: Option<Span>,
        /// The most requests a second, as in 100/s, or 100/s burst 200
        #[arg(long, value_name = "RATE")]
        requests: Option<RateLimit>,
        /// The most bytes of bodies a second, as in 1000000/s
        #[arg(long, value_name = "RATE")]
        bytes: Option<RateLimit>,
        /// The most requests at once
        #[arg(long, value_name = "N")]
        at_once: Option<usize>,
        /// The most takes that wait at once
        #[arg(long, value_name = "N")]
        takes: Option<usize>,
        /// Whose it is, and what for
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
    },
    /// List the tokens, without their secrets
    #[command(after_help = "\
Examples:
  delayline token list
  delayline token list --json")]
    List,
    /// Make a token that may do what another may, which ends a while later
    #[command(after_help = "\
Examples:
  delayline token rotate 0123456789abcdef  # exit 1
  delayline token rotate 0123456789abcdef --overlap 1h  # exit 1")]
    Rotate {
        /// The id of the other, which is the part of it between the underscores
        id: String,
        /// How long the other still lives
        #[arg(long, value_name = "TIME", default_value = "1d")]
        overlap: Span,
    },
    /// End a token: within 5 s no service lets it in
    #[command(after_help = "\
Examples:
  delayline token revoke 0123456789abcdef  # exit 1")]
    Revoke {
        /// Its id, which is the part of it between the underscores
        id: String,
    },
}

impl Token {
    pub(crate) async fn run(&self, redis: &Redis, json: bool) -> Result<(), Failure> {
        let registry = redis.registry(|| "curl http://127.0.0.1:4747/v1/tokens".into()).await?;
        match &self.what {
            What::Create {
                scopes,
                queues,
                namespaces,
                expires_in,
                requests,
                bytes,
                at_once,
                takes,
                description,
            } => {
                let of_namespaces = namespaces.iter().map(|namespace| format!("{namespace}~*").parse());
                let of_namespaces =
                    of_namespaces.collect::<Result<Vec<QueuePattern>, _>>().map_err(Failure::Usage)?;
                let token = NewToken {
                    scopes: scopes.iter().copied().map(Written).collect(),
                    queues: queues.iter().cloned().chain(of_namespaces).collect(),
                    description: description.clone(),
                    expires_in: expires_in.map(Written),
                    expires: None,
                    limits: TokenLimits {
                        requests: requests.map(Written),
                        bytes: bytes.map(Written),
                        at_once: *at_once,
                        takes: *takes,
                    },
                };
                let grant = token.grant(now()).map_err(|problem| Failure::Usage(problem.detail))?;
                say(&tokens::create(&registry, grant, now()).await?, json)
            }
            What::List => list(&registry, json).await,
            What::Rotate { id, overlap } => {
                say(&tokens::rotate(&registry, id, overlap.0, now()).await?, json)
            }
            What::Revoke { id } => revoke(&registry, id, json).await,
        }
    }
}

async fn list(registry: &Arc<Registry>, json: bool) -> Result<(), Failure> {
    let tokens = tokens::list(registry).await?;
    let tokens: Vec<ShownToken> = tokens.iter().map(|(token, used)| ShownToken::new(token, *used)).collect();
    if json {
        return print::document(&json!({ "tokens": tokens }));
    }
    let columns = ["id", "scopes", "queues", "expires", "last used", "description"];
    let mut table = Table::new(&columns.map(|column| (column, Align::Left)));
    for token in &tokens {
        let queues: Vec<String> = token.queues.iter().map(QueuePattern::to_string).collect();
        let queues = if queues.is_empty() { "all".to_owned() } else { queues.join(" ") };
        let at = |time: Option<Time>| time.map_or_else(|| "never".to_owned(), |time| time.to_string());
        let scopes = token.scopes.join(" ");
        let cells = [token.id.clone(), scopes, queues, at(token.expires), at(token.last_used)];
        table.row(cells.into_iter().chain([token.description.clone()]));
    }
    print::text(table)
}

async fn revoke(registry: &Registry, id: &str, json: bool) -> Result<(), Failure> {
    if !registry.remove(Kind::Token, id).await? {
        return Err(tokens::no_such_token(id).into());
    }
    if json {
        return print::document(&json!({ "id": id, "status": "revoked" }));
    }
    print::line(format_args!("{id} revoked"))
}

fn say(Made { id, text }: &Made, json: bool) -> Result<(), Failure> {
    if json { print::document(&json!({ "id": id, "token": text })) } else { print::line(text) }
}
