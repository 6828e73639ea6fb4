//! The HTTP API of lmstfy v1.0.15, for its clients as they are: docs/lmstfy.md says what differs, and why.
//!
//! Namespace `ns` and queue `q` are the queue `ns~q`; a ttr is a lease, tries are attempts, a ttl is a TTL.

mod admin;
mod answer;
mod attributes;
mod conduct;
mod consume;
mod deadletter;
mod job_object;
mod listeners;
mod options;
mod peek;
mod publish;
mod query;
mod remove;
mod stored;
mod target;
mod throttle;
mod tokens;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use delayline_http::Scope;

use crate::service::access::Access;
use crate::service::app::App;
use crate::service::reception::Reception;
use crate::service::registry::Registry;
use crate::service::site::Site;
use crate::service::ulids::Ulids;

use self::admin::Accounts;
use self::answer::Refusal;
use self::target::{Action, Rules, enter};
use self::throttle::Throttle;

pub(crate) use self::listeners::LmstfyListeners;
pub(crate) use self::options::LmstfyOptions;

/// What the routes of both listeners share.
struct Lmstfy {
    app: Arc<App>,
    registry: Arc<Registry>,
    access: Access,
    throttle: Arc<Throttle>,
    ulids: Ulids,
    accounts: Accounts,
    /// Whether clients need no token, as with lmstfy's flag `-sv`.
    is_open: bool,
}

type Shared = Arc<Lmstfy>;

impl Lmstfy {
    /// Fails if the operating system gives no randomness.
    fn new(
        app: Arc<App>,
        registry: Arc<Registry>,
        access: Access,
        accounts: Accounts,
        is_open: bool,
    ) -> io::Result<Arc<Lmstfy>> {
        let (throttle, ulids) = (Arc::default(), Ulids::new()?);
        Ok(Arc::new(Lmstfy { app, registry, access, throttle, ulids, accounts, is_open }))
    }
}

/// The routes for clients.
fn clients(lmstfy: &Arc<Lmstfy>, site: Site) -> Reception {
    use MethodFilter as Method;

    let layer = |rules: Rules| from_fn_with_state((Arc::clone(lmstfy), rules), enter);
    let to = |scopes| layer(Rules::of(scopes));
    let public = || layer(Rules { scopes: None, ..Rules::of(&[]) });
    let produce = || layer(Rules { throttled: Some(Action::Produce), ..Rules::of(&[Scope::Publish]) });
    let consume = || {
        layer(Rules { takes_many: true, throttled: Some(Action::Consume), ..Rules::of(&[Scope::Consume]) })
    };

    let queue = on(Method::PUT, publish::one.layer(produce()))
        .on(Method::GET, consume::consume.layer(consume()))
        .on(Method::DELETE, remove::destroy.layer(to(&[Scope::Admin])));
    let job = on(Method::PUT, publish::again.layer(to(&[Scope::Publish, Scope::Consume])))
        .on(Method::GET, peek::job.layer(to(&[Scope::Read])))
        .on(Method::DELETE, remove::job.layer(to(&[Scope::Consume])));
    let deadletter = on(Method::GET, deadletter::peek.layer(to(&[Scope::Read])))
        .on(Method::PUT, deadletter::respawn.layer(to(&[Scope::Admin])))
        .on(Method::DELETE, deadletter::delete.layer(to(&[Scope::Admin])));
    let routes = Router::new()
        .route("/api/{namespace}/{queue}", queue)
        .route("/api/{namespace}/{queue}/bulk", on(Method::PUT, publish::bulk.layer(produce())))
        .route("/api/{namespace}/{queue}/job/{job_id}", job)
        .route("/api/{namespace}/{queue}/peek", on(Method::GET, peek::head.layer(to(&[Scope::Read]))))
        .route("/api/{namespace}/{queue}/size", on(Method::GET, peek::size.layer(public())))
        .route("/api/{namespace}/{queue}/deadletter", deadletter)
        .route("/api/{namespace}/{queue}/deadletter/size", on(Method::GET, deadletter::size.layer(public())))
        .with_state(Arc::clone(lmstfy));
    conduct::conducted(&lmstfy.app, routes, site, api_not_found)
}

/// What a path without a route is answered, and one with a route for other methods: never 405.
fn api_not_found() -> Response {
    Refusal::error(StatusCode::NOT_FOUND, "api not found").into_response()
}
