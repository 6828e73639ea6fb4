use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use delayline_core::{Config, Pumping, Subscription, Verdict};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tower::{Layer, Service};

use crate::client::Office;
use crate::inbox::{Desk, Signal, Stop};
use crate::invalid::millis;
use crate::owner::{self, Plan};
use crate::runner::{Route, Runner};
use crate::service::{self, JobService, Wrap};
use crate::{Client, Context, Error, Failure, FlightRecorder, Handler, Invalid, Queue, entropy};

/// Runs handlers on the jobs of queues, and renews their leases for as long as they take.
///
/// Handlers run on the runtime that awaits [`run_until`](Worker::run_until), each in a task of its own; leases are
/// renewed from another thread, so that a handler that blocks its runtime keeps them. A handler that panics has failed
/// an attempt. One whose lease is lost all the same is aborted at its next await, unless
/// [`on_lost_lease`](Worker::on_lost_lease) says otherwise: its job may be run elsewhere by then.
///
/// ```
/// # #[cfg(feature = "memory")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use delayline_tokio::{Attempt, Client, Data, Job, QueueOptions, Worker};
///
/// async fn add(Job(amount): Job<u64>, Data(sum): Data<Arc<AtomicU64>>, Attempt(attempt): Attempt) {
///     sum.fetch_add(amount, Ordering::Relaxed);
/// }
///
/// let client = Client::connect("memory://").await?;
/// let (deposits, reports) = (client.queue::<u64>("deposits")?, client.queue::<String>("reports")?);
/// deposits.publish(&17).await?;
/// reports.publish(&"done".to_owned()).await?;
///
/// let sum = Arc::new(AtomicU64::new(0));
/// let (stop, stopped) = tokio::sync::oneshot::channel();
/// let stop = Arc::new(std::sync::Mutex::new(Some(stop)));
/// let report = move |Job(text): Job<String>| {
///     let stop = stop.lock().unwrap().take();
///     async move { drop(stop.map(|stop| stop.send(text))) }
/// };
/// Worker::new(&client)
///     .with_data(sum.clone())
///     .concurrency(20)
///     .queue_with(&deposits, QueueOptions { weight: 3, max: 10 }, add)
///     .queue(&reports, report)
///     .run_until(async { assert_eq!(stopped.await.unwrap(), "done") })
///     .await?;
/// # Ok::<(), delayline_tokio::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "a worker does nothing until it is run"]
pub struct Worker<S = ()> {
    office: Arc<Office>,
    data: S,
    slots: u16,
    lease: Duration,
    grace: Duration,
    lost_lease: LostLease,
    on_error: OnError,
    routes: Vec<(Subscription, JobService, Arc<dyn Any + Send + Sync>)>,
    layers: Vec<Wrap>,
    recorder: Option<FlightRecorder>,
    refused: Option<Error>,
}

/// How long the drop of a worker waits for its jobs to be given back.
const FAREWELL: Duration = Duration::from_secs(1);

/// How a queue shares a worker with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Its share of the concurrency, beside the other queues'; 1 to 100.
    pub weight: u16,
    /// The most of its jobs at once; at least 1.
    pub max: u16,
}

/// What happens to a handler whose lease is lost while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostLease {
    /// It is aborted at its next await.
    #[default]
    Abort,
    /// Its `CancellationToken` ends, and it goes on; its verdict is ignored.
    Cooperate,
}

/// What decides otherwise than a failure itself.
pub(crate) type OnError = Option<Arc<dyn Fn(&Failure, &Context) -> Option<Verdict> + Send + Sync>>;

impl Default for QueueOptions {
    fn default() -> QueueOptions {
        QueueOptions { weight: 1, max: 10_000 }
    }
}

impl Worker {
    /// A worker on the client's deployment, with an engine and connections of its own.
    pub fn new(client: &Client) -> Worker {
        Worker {
            office: client.office.clone(),
            data: (),
            slots: 50,
            lease: Duration::from_secs(30),
            grace: Duration::from_secs(20),
            lost_lease: LostLease::Abort,
            on_error: None,
            routes: Vec::new(),
            layers: Vec::new(),
            recorder: None,
            refused: None,
        }
    }
}

impl<S> Worker<S> {
    /// What the handlers of the queues that are added from now on get as [`Data`](crate::Data).
    pub fn with_data<D: Clone + Send + Sync + 'static>(self, data: D) -> Worker<D> {
        let Worker {
            office,
            slots,
            lease,
            grace,
            lost_lease,
            on_error,
            routes,
            layers,
            recorder,
            refused,
            ..
        } = self;
        Worker { office, data, slots, lease, grace, lost_lease, on_error, routes, layers, recorder, refused }
    }

    /// How many jobs run at once, over all queues: 1 to 10,000; 50 if not called.
    pub fn concurrency(mut self, jobs: u16) -> Worker<S> {
        self.slots = jobs;
        self
    }

    /// How long the leases last, 1 s to 24 h; 30 s if not called. They are renewed at a third of that, so this is how
    /// long the jobs of a worker that crashed wait, not how long a handler may take.
    pub fn lease(mut self, lease: Duration) -> Worker<S> {
        self.lease = lease;
        self
    }

    /// How long handlers may go on after the shutdown has begun; 20 s if not called.
    pub fn grace(mut self, grace: Duration) -> Worker<S> {
        self.grace = grace;
        self
    }

    /// What happens to a handler whose lease is lost while it runs; it is aborted if not called.
    pub fn on_lost_lease(mut self, what: LostLease) -> Worker<S> {
        self.lost_lease = what;
        self
    }

    /// Records what this worker's engine is told; nothing is recorded if not called.
    pub fn flight_recorder(mut self, recorder: FlightRecorder) -> Worker<S> {
        self.recorder = Some(recorder);
        self
    }

    /// Lets a policy look at every failure: of handlers, layers, bodies that cannot be read, and panics. Its verdict is
    /// taken; on `None`, the failure's own.
    ///
    /// ```
    /// # use delayline_tokio::{Client, Verdict, Worker};
    /// # fn with_policy(client: &Client) -> Worker {
    /// Worker::new(client).on_error(|failure, context| {
    ///     let is_ours = failure.error()?.is::<std::num::ParseIntError>();
    ///     (is_ours && context.attempt > 3).then(|| Verdict::Bury { reason: "not a number".into() })
    /// })
    /// # }
    /// ```
    pub fn on_error(
        mut self,
        policy: impl Fn(&Failure, &Context) -> Option<Verdict> + Send + Sync + 'static,
    ) -> Worker<S> {
        self.on_error = Some(Arc::new(policy));
        self
    }

    /// Runs `handler` on the queue's jobs: see [`Handler`].
    pub fn queue<T: 'static, Args>(self, queue: &Queue<T>, handler: impl Handler<T, S, Args>) -> Worker<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        self.queue_with(queue, QueueOptions::default(), handler)
    }

    /// Runs `handler` on the queue's jobs, with a share of the concurrency.
    pub fn queue_with<T: 'static, Args>(
        self,
        queue: &Queue<T>,
        options: QueueOptions,
        handler: impl Handler<T, S, Args>,
    ) -> Worker<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        let service = service::of_handler(handler, self.data.clone());
        self.route(queue, options, service)
    }

    /// Calls a tower service for the queue's jobs; [`Context::job`] reads them. Its errors are failures: any error will
    /// do, and so will a [`Failure`].
    pub fn service<T: 'static, V>(self, queue: &Queue<T>, service: V) -> Worker<S>
    where
        V: Service<Context, Response = Verdict, Error: Into<Failure>> + Clone + Send + Sync + 'static,
        V::Future: Send + 'static,
    {
        self.service_with(queue, QueueOptions::default(), service)
    }

    /// Calls a tower service for the queue's jobs, with a share of the concurrency.
    pub fn service_with<T: 'static, V>(self, queue: &Queue<T>, options: QueueOptions, service: V) -> Worker<S>
    where
        V: Service<Context, Response = Verdict, Error: Into<Failure>> + Clone + Send + Sync + 'static,
        V::Future: Send + 'static,
    {
        self.route(queue, options, service::of_service(service))
    }

    /// Puts a tower layer around the handlers of all queues, whenever they are added. The last layer is the outermost.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use delayline_tokio::{Client, Worker};
    /// # fn with_timeout(client: &Client) -> Worker {
    /// Worker::new(client).layer(tower::timeout::TimeoutLayer::new(Duration::from_secs(10)))
    /// # }
    /// ```
    pub fn layer<L>(mut self, layer: L) -> Worker<S>
    where
        L: Layer<JobService> + Send + 'static,
        L::Service:
            Service<Context, Response = Verdict, Error: Into<Failure>> + Clone + Send + Sync + 'static,
        <L::Service as Service<Context>>::Future: Send + 'static,
    {
        self.layers.push(service::of_layer(layer));
        self
    }

    fn route<T: 'static>(
        mut self,
        queue: &Queue<T>,
        options: QueueOptions,
        service: JobService,
    ) -> Worker<S> {
        let name = queue.name();
        if self.routes.iter().any(|(known, ..)| known.queue == *name) {
            self.refused.get_or_insert(Invalid::QueueTwice(name.to_string()).into());
        } else if !queue.is_of(&self.office) {
            self.refused.get_or_insert(Invalid::OtherClient(name.to_string()).into());
        } else {
            let QueueOptions { weight, max } = options;
            let coder: Arc<dyn Any + Send + Sync> = Arc::new(queue.coder().clone());
            let subscription = Subscription { queue: name.clone(), weight, max };
            self.routes.push((subscription, service, coder));
        }
        self
    }

    /// Runs until the client is closed: [`run_until`](Worker::run_until) without another end.
    pub async fn run(self) -> Result<(), Error> {
        self.run_until(std::future::pending::<()>()).await
    }

    /// Runs until `shutdown` ends, with whatever, or the client is closed; then takes no more jobs and waits for those that run. What
    /// still runs when the grace is over is aborted and given back, its attempt unspent.
    ///
    /// Fails before it begins, on a name or a limit that cannot be used; with [`Error::ShardsMismatch`] when Redis lost the
    /// deployment, and it was opened anew with another number of shards; and with [`Error::EnginePanicked`], a bug: then
    /// the leases of what runs are lost. When its future is dropped, what runs is aborted and given back at once; the drop
    /// blocks its thread until that is done, for a second at most, so that a process may end after it.
    pub async fn run_until(self, shutdown: impl Future) -> Result<(), Error> {
        let client_stop = self.office.desk.stop.subscribe();
        let desk = owner::start(self.plan()?)?;
        until(desk, client_stop, shutdown).await
    }

    /// Begins at once, in the background.
    #[cfg(feature = "memory")]
    pub(crate) fn start(self) -> Result<(), Error> {
        let client_stop = self.office.desk.stop.subscribe();
        let desk = owner::start(self.plan()?)?;
        tokio::spawn(until(desk, client_stop, std::future::pending::<()>()));
        Ok(())
    }

    fn plan(self) -> Result<Plan, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        if self.routes.is_empty() {
            return Err(Invalid::NoQueue.into());
        }
        Invalid::lease(millis(self.lease))?;
        let runtime = Handle::try_current().map_err(|_| Invalid::NoRuntime)?;
        let config = Config {
            shards: self.office.shards,
            subscriptions: self.routes.iter().map(|(subscription, ..)| subscription.clone()).collect(),
            slots: self.slots,
            pump: Pumping::Always,
            lease_ms: millis(self.lease),
            salt: entropy::salt(&self.office.store)?,
            ceiling: self.office.limits.ceiling,
            pacing: self.office.limits.pacing,
            gap_ms: millis(self.office.limits.gap),
            ..Config::default()
        };
        let layers = self.layers;
        let routes = self.routes.into_iter().map(|(subscription, service, coder)| {
            let service = layers.iter().fold(service, |service, wrap| wrap(service));
            (subscription.queue, Route { service: Arc::new(service), coder })
        });
        let runner = Runner {
            runtime,
            routes: routes.collect::<HashMap<_, _>>(),
            on_error: self.on_error,
            lost_lease: self.lost_lease,
            held: self.office.store.held(),
        };
        Ok(Plan {
            store: self.office.store.clone(),
            prefix: self.office.prefix.clone(),
            config,
            grace: self.grace,
            runner: Some(runner),
            site: self.office.desk.site.clone(),
            recorder: self.recorder,
        })
    }
}

async fn until(
    desk: Desk,
    mut client_stop: watch::Receiver<Stop>,
    shutdown: impl Future,
) -> Result<(), Error> {
    let _now = StopNow(&desk);
    let closed = async {
        if client_stop.wait_for(|stop| *stop != Stop::Not).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = shutdown => {}
        () = closed => {}
        () = desk.site.doomed() => drop(desk.signals.send(Signal::Panic)),
        _ = desk.ended() => {}
    }
    let _ = desk.stop.send(Stop::Drain);
    desk.ended().await
}

/// Stops an engine at once when nobody waits for its worker any more.
struct StopNow<'a>(&'a Desk);

impl Drop for StopNow<'_> {
    fn drop(&mut self) {
        let _ = self.0.stop.send(Stop::Now);
        self.0.join(FAREWELL);
    }
}
