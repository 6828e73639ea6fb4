use delayline_core::Verdict;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

use crate::{BoxError, Context, Failure, Handler};

/// What a worker calls for each job, underneath: a [tower](https://docs.rs/tower) service.
///
/// A handler's error is its error, so that layers see it: as it is, or as the source of one that says what is to happen
/// next. An error of a layer, such as a timeout's, is a failed attempt, unless a handler's failure is among its sources:
/// then that says what is to happen.
pub type JobService = BoxCloneSyncService<Context, Verdict, BoxError>;

pub(crate) type Wrap = Box<dyn Fn(JobService) -> JobService + Send>;

pub(crate) fn of_handler<T, S, Args>(handler: impl Handler<T, S, Args>, data: S) -> JobService
where
    S: Clone + Send + Sync + 'static,
{
    of_service(tower::service_fn(move |context| handler.call(context, &data)))
}

pub(crate) fn of_service<V>(service: V) -> JobService
where
    V: Service<Context, Response = Verdict, Error: Into<Failure>> + Clone + Send + Sync + 'static,
    V::Future: Send + 'static,
{
    BoxCloneSyncService::new(service.map_err(|error| error.into().into_error()))
}

pub(crate) fn of_layer<L>(layer: L) -> Wrap
where
    L: Layer<JobService> + Send + 'static,
    L::Service: Service<Context, Response = Verdict, Error: Into<Failure>> + Clone + Send + Sync + 'static,
    <L::Service as Service<Context>>::Future: Send + 'static,
{
    Box::new(move |service| of_service(layer.layer(service)))
}
