use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};

use super::admin::{Accounts, administrators};
use super::answer::Refusal;
use super::{Lmstfy, LmstfyOptions, clients};
use crate::failure::Failure;
use crate::service::access::Access;
use crate::service::app::App;
use crate::service::listener::Listener;
use crate::service::origins::Origins;
use crate::service::peers::Crowded;
use crate::service::reception::Reception;
use crate::service::registry::Registry;
use crate::service::site::Site;
use crate::service::tls::Tls;

/// Where lmstfy's clients and administrators are heard, as far as they are.
pub(crate) struct LmstfyListeners {
    clients: Option<(Listener, Site)>,
    administrators: Option<(Listener, Site)>,
    accounts: Accounts,
    access: Access,
    is_open: bool,
}

impl LmstfyListeners {
    /// Listens. Other machines may reach what asks for tokens, and the rest only if `insecure` allows that.
    pub(crate) async fn bind(
        options: &LmstfyOptions,
        insecure: bool,
        hosts: &[String],
        access: &Access,
        tls: Option<&Arc<Tls>>,
    ) -> Result<LmstfyListeners, Failure> {
        let LmstfyOptions { lmstfy, lmstfy_admin, lmstfy_open, lmstfy_account } = options;
        let accounts = Accounts::read(lmstfy_account)?;
        let bind = async |place: &Option<String>, exposed| match place {
            Some(place) => {
                let (listener, _) = Listener::tcp(place, exposed).await?;
                let listener = listener.with_access(access.clone().with_ulids()).refusing_by(too_many);
                let listener = listener.with_tls(tls.cloned());
                let site = Site::new([&listener], hosts, Origins::default());
                Ok::<_, Failure>(Some((listener, site)))
            }
            None => Ok(None),
        };
        Ok(LmstfyListeners {
            clients: bind(lmstfy, insecure || !lmstfy_open).await?,
            administrators: bind(lmstfy_admin, insecure).await?,
            accounts,
            access: access.clone(),
            is_open: *lmstfy_open,
        })
    }

    /// Where clients and administrators are heard.
    pub(crate) fn addresses(&self) -> [Option<SocketAddr>; 2] {
        [&self.clients, &self.administrators]
            .map(|place| place.as_ref().and_then(|(listener, _)| listener.address()))
    }

    /// The listeners, each with its routes.
    pub(crate) fn routed(
        self,
        app: &Arc<App>,
        registry: Arc<Registry>,
    ) -> io::Result<Vec<(Listener, Reception)>> {
        let lmstfy = Lmstfy::new(Arc::clone(app), registry, self.access, self.accounts, self.is_open)?;
        let clients = self.clients.map(|(listener, site)| {
            tracing::info!("lmstfy's API is on {listener}");
            (listener, clients(&lmstfy, site))
        });
        let administrators = self.administrators.map(|(listener, site)| {
            tracing::info!("lmstfy's admin API is on {listener}");
            (listener, administrators(&lmstfy, site))
        });
        Ok(clients.into_iter().chain(administrators).collect())
    }
}

fn too_many(_: Crowded) -> Response {
    Refusal::internal("too_many_connections", "all connections are in use").into_response()
}
