use std::fmt;
use std::str::FromStr;

use crate::Problem;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation {
    Publish,
    PublishBatch,
    InspectJob,
    CancelJob,
    RescheduleJob,
    ListJobs,
    CancelMany,
    RescheduleMany,
    ReleaseJob,
    Take,
    SettleMany,
    Ack,
    Nack,
    Snooze,
    Release,
    Bury,
    Extend,
    ListQueues,
    ShowQueue,
    DestroyQueue,
    ShowConfig,
    ConfigureQueue,
    PatchConfig,
    PauseQueue,
    ResumeQueue,
    ListDead,
    RequeueDead,
    PurgeDead,
    ListNamespaces,
    ShowNamespace,
    LimitNamespace,
    UnlimitNamespace,
    ListTokens,
    CreateToken,
    RotateToken,
    RevokeToken,
    Health,
    Ready,
    Metrics,
    OpenApi,
    Docs,
}

/// What a token must be for, so that a request with it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Publishing jobs, and cancelling and rescheduling those that wait.
    Publish,
    /// Taking jobs, and ending and extending their leases.
    Consume,
    /// Reading jobs, queues and metrics.
    Read,
    /// Changing queues, dead letters and tokens.
    Admin,
}

/// A method and a path, what they ask for, and who may.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// In upper case. `GET` is `HEAD` too.
    pub method: &'static str,
    /// With its parameters as in `/v1/queues/{queue}`.
    pub path: &'static str,
    /// What is asked for.
    pub operation: Operation,
    /// What a token must be for; `None` lets in whoever comes.
    pub scope: Option<Scope>,
}

/// Every route of the HTTP API: routers and the OpenAPI document are made of this table.
pub const ROUTES: &[Route] = {
    use Operation::{
        Ack, Bury, CancelJob, CancelMany, ConfigureQueue, CreateToken, DestroyQueue, Docs, Extend, Health,
        InspectJob, LimitNamespace, ListDead, ListJobs, ListNamespaces, ListQueues, ListTokens, Metrics,
        Nack, OpenApi, PatchConfig, PauseQueue, Publish, PublishBatch, PurgeDead, Ready, Release, ReleaseJob,
        RequeueDead, RescheduleJob, RescheduleMany, ResumeQueue, RevokeToken, RotateToken, SettleMany,
        ShowConfig, ShowNamespace, ShowQueue, Snooze, Take, UnlimitNamespace,
    };
    &[
        publish("POST", "/v1/queues/{queue}/jobs", Publish),
        publish("POST", "/v1/queues/{queue}/batch", PublishBatch),
        read("GET", "/v1/queues/{queue}/jobs/{id}", InspectJob),
        publish("DELETE", "/v1/queues/{queue}/jobs/{id}", CancelJob),
        publish("PATCH", "/v1/queues/{queue}/jobs/{id}", RescheduleJob),
        read("GET", "/v1/queues/{queue}/jobs", ListJobs),
        publish("DELETE", "/v1/queues/{queue}/jobs", CancelMany),
        publish("PATCH", "/v1/queues/{queue}/jobs", RescheduleMany),
        admin("POST", "/v1/queues/{queue}/jobs/{id}/release", ReleaseJob),
        consume("POST", "/v1/take", Take),
        consume("POST", "/v1/leases/settle", SettleMany),
        consume("POST", "/v1/leases/{lease}/ack", Ack),
        consume("POST", "/v1/leases/{lease}/nack", Nack),
        consume("POST", "/v1/leases/{lease}/snooze", Snooze),
        consume("POST", "/v1/leases/{lease}/release", Release),
        consume("POST", "/v1/leases/{lease}/bury", Bury),
        consume("POST", "/v1/leases/{lease}/extend", Extend),
        read("GET", "/v1/queues", ListQueues),
        read("GET", "/v1/queues/{queue}", ShowQueue),
        admin("DELETE", "/v1/queues/{queue}", DestroyQueue),
        read("GET", "/v1/queues/{queue}/config", ShowConfig),
        admin("PUT", "/v1/queues/{queue}/config", ConfigureQueue),
        admin("PATCH", "/v1/queues/{queue}/config", PatchConfig),
        admin("POST", "/v1/queues/{queue}/pause", PauseQueue),
        admin("POST", "/v1/queues/{queue}/resume", ResumeQueue),
        read("GET", "/v1/queues/{queue}/dead", ListDead),
        admin("POST", "/v1/queues/{queue}/dead/requeue", RequeueDead),
        admin("POST", "/v1/queues/{queue}/dead/purge", PurgeDead),
        read("GET", "/v1/namespaces", ListNamespaces),
        read("GET", "/v1/namespaces/{namespace}", ShowNamespace),
        admin("PUT", "/v1/namespaces/{namespace}", LimitNamespace),
        admin("DELETE", "/v1/namespaces/{namespace}", UnlimitNamespace),
        admin("GET", "/v1/tokens", ListTokens),
        admin("POST", "/v1/tokens", CreateToken),
        admin("POST", "/v1/tokens/{token}/rotate", RotateToken),
        admin("DELETE", "/v1/tokens/{token}", RevokeToken),
        open("GET", "/healthz", Health),
        open("GET", "/readyz", Ready),
        read("GET", "/metrics", Metrics),
        open("GET", "/v1/openapi.json", OpenApi),
        open("GET", "/v1/docs", Docs),
    ]
};

const fn of(method: &'static str, path: &'static str, operation: Operation, scope: Option<Scope>) -> Route {
    Route { method, path, operation, scope }
}

const fn publish(method: &'static str, path: &'static str, operation: Operation) -> Route {
    of(method, path, operation, Some(Scope::Publish))
}

const fn consume(method: &'static str, path: &'static str, operation: Operation) -> Route {
    of(method, path, operation, Some(Scope::Consume))
}

const fn read(method: &'static str, path: &'static str, operation: Operation) -> Route {
    of(method, path, operation, Some(Scope::Read))
}

const fn admin(method: &'static str, path: &'static str, operation: Operation) -> Route {
    of(method, path, operation, Some(Scope::Admin))
}

const fn open(method: &'static str, path: &'static str, operation: Operation) -> Route {
    of(method, path, operation, None)
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 4] = [Scope::Publish, Scope::Consume, Scope::Read, Scope::Admin];

    /// Its name, as tokens have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Publish => "publish",
            Scope::Consume => "consume",
            Scope::Read => "read",
            Scope::Admin => "admin",
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(name: &str) -> Result<Scope, String> {
        let scope = Scope::ALL.into_iter().find(|scope| scope.as_str() == name);
        let shown = || name.chars().take(80).collect::<String>();
        scope.ok_or_else(|| format!("{:?} is no scope: use publish, consume, read or admin", shown()))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Operation {
    /// Whether a server without a router of its own answers it: what publishers ask for.
    fn is_of_publishers(self) -> bool {
        use Operation::{CancelJob, InspectJob, Publish, PublishBatch, RescheduleJob, ShowQueue};

        matches!(self, Publish | PublishBatch | InspectJob | CancelJob | RescheduleJob | ShowQueue)
    }
}

impl Route {
    /// The route of publishers by which this request is answered, and the parameters of its path as they stand there.
    pub(crate) fn find<'p>(method: &str, path: &'p str) -> Result<(Operation, Vec<&'p str>), Problem> {
        let mut allowed = Vec::new();
        for route in ROUTES.iter().filter(|route| route.operation.is_of_publishers()) {
            let Some(parameters) = route.parameters(path) else { continue };
            if route.is_by(method) {
                return Ok((route.operation, parameters));
            }
            allowed.push(route.method);
            if route.method == "GET" {
                allowed.push("HEAD");
            }
        }
        if allowed.is_empty() {
            Err(Problem::no_such_route(method, path))
        } else {
            Err(Problem::method_not_allowed(method, path).header("allow", allowed.join(",")))
        }
    }

    fn is_by(&self, method: &str) -> bool {
        self.method == method || (self.method == "GET" && method == "HEAD")
    }

    /// The parts of the path where this route has parameters, if all else is equal.
    fn parameters<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        if path.ends_with('/') {
            return None;
        }
        let (mut wanted, mut found) = (self.path.split('/'), path.split('/'));
        let mut parameters = Vec::new();
        loop {
            match (wanted.next(), found.next()) {
                (None, None) => return Some(parameters),
                (Some(wanted), Some(found)) if wanted.starts_with('{') => parameters.push(found),
                (Some(wanted), Some(found)) if wanted == found => {}
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_and_a_path_are_one_route() {
        for (i, one) in ROUTES.iter().enumerate() {
            let is_same = |other: &&Route| (one.method, one.path) == (other.method, other.path);
            assert!(!ROUTES[i + 1..].iter().any(|other| is_same(&other)), "{one:?}");
            assert_eq!(ROUTES.iter().filter(|other| other.operation == one.operation).count(), 1, "{one:?}");
        }
    }
}
