use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use delayline_core::{Job as Delivery, JobId, QueueName};
use tokio_util::sync::CancellationToken;

use crate::codec::Coder;
use crate::{Failure, extract};

/// What is known of the delivery that a handler is called for: the job's id, queue, attempt, due time, headers and body,
/// by [`Delivery`], and whether its lease is lost.
///
/// A clone is cheap. It is what tower's services and layers are called with.
///
/// ```
/// use delayline_tokio::{Context, Failure, Job};
///
/// async fn import(Job(path): Job<String>, context: Context) -> Result<(), Failure> {
///     println!("{} of {}, attempt {}, {} ms late", context.id(), context.queue(), context.attempt, context.late_ms);
///     for part in 0..100 {
///         if context.cancellation().is_cancelled() {
///             return Err("the lease is lost: another worker goes on".into());
///         }
///         println!("{path}, part {part}");
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Context {
    delivery: Arc<Delivery>,
    lost: CancellationToken,
    coder: Arc<dyn Any + Send + Sync>,
}

impl Context {
    pub(crate) fn new(
        delivery: Delivery,
        lost: CancellationToken,
        coder: Arc<dyn Any + Send + Sync>,
    ) -> Context {
        Context { delivery: Arc::new(delivery), lost, coder }
    }

    /// Its queue.
    pub fn queue(&self) -> &QueueName {
        &self.delivery.lease.queue
    }

    /// Its name.
    pub fn id(&self) -> &JobId {
        &self.delivery.lease.id
    }

    /// Whether the job is dead if this attempt fails.
    pub fn is_last_attempt(&self) -> bool {
        self.delivery.attempt >= self.delivery.max_attempts
    }

    /// The value of the first header of this name; names are told apart by case.
    pub fn header(&self, name: &str) -> Option<&str> {
        extract::header(&self.delivery.headers, name)
    }

    /// The delivery for itself.
    pub fn into_delivery(self) -> Delivery {
        Arc::unwrap_or_clone(self.delivery)
    }

    /// Ends when the lease is lost, or the grace of a shutdown is over: whatever is done from then on may be done twice.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.lost
    }

    /// The job itself. Fails if the body is not that of a `T`, or the queue's jobs are of another type.
    pub fn job<T: 'static>(&self) -> Result<T, Failure> {
        let Some(coder) = self.coder.downcast_ref::<Coder<T>>() else {
            let (queue, wanted) = (self.queue(), std::any::type_name::<T>());
            return Err(format!("the jobs of queue {queue} are not read as {wanted} by this worker").into());
        };
        coder.decode(&self.delivery.body, self.delivery.content_type.as_deref()).map_err(|error| {
            Failure::from(format!("the body is not a {}: {error}", std::any::type_name::<T>()))
        })
    }
}

impl Deref for Context {
    type Target = Delivery;

    fn deref(&self) -> &Delivery {
        &self.delivery
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("delivery", &self.delivery).finish_non_exhaustive()
    }
}
