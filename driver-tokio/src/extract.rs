use delayline_core::{JobId, QueueName};
use tokio_util::sync::CancellationToken;

use crate::{Context, Failure};

/// What a handler may ask for as an argument: made from the delivery, and from the data of its worker. `T` is what the
/// jobs of the queue are.
///
/// [`Job`], [`Data`], [`Attempt`], [`Headers`], [`JobId`], [`QueueName`], [`Context`] and [`CancellationToken`] are such,
/// and tuples of them; so is what implements it elsewhere:
///
/// ```
/// use delayline_tokio::{Context, Failure, FromContext, Job};
///
/// struct Tenant(String);
///
/// impl<T, S> FromContext<T, S> for Tenant {
///     fn from_context(context: &Context, _: &S) -> Result<Tenant, Failure> {
///         let tenant = context.header("tenant").ok_or_else(|| Failure::bury("it names no tenant"))?;
///         Ok(Tenant(tenant.to_owned()))
///     }
/// }
///
/// async fn bill(Job(amount): Job<u64>, Tenant(tenant): Tenant) {
///     println!("{tenant} owes {amount}");
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler for a `Queue<{T}>` whose worker has data `{S}`",
    label = "no such argument",
    note = "arguments may be `Job<{T}>`, `Data<{S}>` (set by `Worker::with_data`, before the queue is added), `Attempt`, \
            `Headers`, `JobId`, `QueueName`, `Context`, `CancellationToken`, or your own type with `FromContext`"
)]
pub trait FromContext<T, S>: Sized {
    /// Makes it; an `Err` is the handler's.
    fn from_context(context: &Context, data: &S) -> Result<Self, Failure>;
}

/// The job itself, as its queue's [`Codec`](crate::Codec) reads it. A body that cannot be read is a failed attempt, not
/// the end: a deploy may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job<T>(pub T);

/// A clone of the data that the worker was given by [`with_data`](crate::Worker::with_data).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<S>(pub S);

/// Which attempt this is, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt(pub u16);

/// What the publisher said beside the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// The value of the first header of this name; names are told apart by case.
    pub fn get(&self, name: &str) -> Option<&str> {
        header(&self.0, name)
    }
}

pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

impl<T: 'static, S> FromContext<T, S> for Job<T> {
    fn from_context(context: &Context, _: &S) -> Result<Job<T>, Failure> {
        context.job().map(Job)
    }
}

impl<T, S: Clone> FromContext<T, S> for Data<S> {
    fn from_context(_: &Context, data: &S) -> Result<Data<S>, Failure> {
        Ok(Data(data.clone()))
    }
}

impl<T, S> FromContext<T, S> for Attempt {
    fn from_context(context: &Context, _: &S) -> Result<Attempt, Failure> {
        Ok(Attempt(context.attempt))
    }
}

impl<T, S> FromContext<T, S> for Headers {
    fn from_context(context: &Context, _: &S) -> Result<Headers, Failure> {
        Ok(Headers(context.headers.clone()))
    }
}

impl<T, S> FromContext<T, S> for JobId {
    fn from_context(context: &Context, _: &S) -> Result<JobId, Failure> {
        Ok(context.id().clone())
    }
}

impl<T, S> FromContext<T, S> for QueueName {
    fn from_context(context: &Context, _: &S) -> Result<QueueName, Failure> {
        Ok(context.queue().clone())
    }
}

impl<T, S> FromContext<T, S> for Context {
    fn from_context(context: &Context, _: &S) -> Result<Context, Failure> {
        Ok(context.clone())
    }
}

impl<T, S> FromContext<T, S> for CancellationToken {
    fn from_context(context: &Context, _: &S) -> Result<CancellationToken, Failure> {
        Ok(context.cancellation().clone())
    }
}
