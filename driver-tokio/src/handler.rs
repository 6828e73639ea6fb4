use std::future::Future;

use delayline_core::Verdict;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::{Context, Failure, FromContext, IntoVerdict};

/// What runs the jobs of a `Queue<T>` in a worker with data `S`: an `async fn` or closure of up to six arguments, each
/// of which is [`FromContext`], that returns [`IntoVerdict`]. `Args` is inferred.
///
/// ```
/// use delayline_tokio::{Attempt, Job};
///
/// async fn send(Job(to): Job<String>, Attempt(attempt): Attempt) -> Result<(), std::io::Error> {
///     println!("to {to}, attempt {attempt}");
///     Ok(())
/// }
/// ```
///
/// A handler for jobs of another type does not compile:
///
/// ```compile_fail,E0277
/// # use delayline_tokio::{Client, Job, Worker};
/// async fn send(Job(number): Job<u64>) {}
///
/// # async fn run(client: Client) -> Result<(), delayline_tokio::Error> {
/// let names = client.queue::<String>("names")?;
/// Worker::new(&client).queue(&names, send);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "this is no handler for the jobs of a `Queue<{T}>` in a worker with data `{S}`",
    label = "no handler for a `Queue<{T}>`",
    note = "it must be an `async fn`, or a closure that is `Clone + Send + Sync + 'static` and answers a future; for a \
            function without `async`, use `delayline_tokio::blocking(handler)`",
    note = "its arguments, at most six, may be `Job<{T}>`, `Data<{S}>`, `Attempt`, `Headers`, `JobId`, `QueueName`, \
            `Context`, `CancellationToken`, or your own type with `FromContext`",
    note = "`Data<D>` needs `.with_data(..)` of a `D`, called on the worker before this queue is added; here it is `{S}`",
    note = "it must return `()`, a `Verdict`, or a `Result` of these whose error is a `Failure`, any `Error + Send + Sync`, \
            or a text",
    note = "its future must be `Send`: what is not, such as an `Rc` or a guard of a `std::sync::Mutex`, must not be held \
            across an `.await`"
)]
pub trait Handler<T, S, Args>: Clone + Send + Sync + 'static {
    /// Runs it.
    fn call(&self, context: Context, data: &S) -> BoxFuture<'static, Result<Verdict, Failure>>;
}

/// A handler that blocks its thread: it runs on those that tokio keeps for it.
///
/// It is a plain function, without `async`, of the same arguments as any handler. Its thread cannot be stopped from
/// outside: when the lease is lost, or a shutdown's grace is over, it runs on, and its verdict is ignored. One that
/// takes long should ask its `CancellationToken`.
///
/// ```
/// # use delayline_tokio::{Client, Job, Worker, blocking};
/// # async fn run(client: Client) -> Result<(), delayline_tokio::Error> {
/// # let thumbnails = client.queue::<String>("thumbnails")?;
/// fn shrink(Job(path): Job<String>) -> Result<(), std::io::Error> {
///     let image = std::fs::read(path)?;
///     // … many milliseconds of arithmetic …
///     Ok(())
/// }
///
/// Worker::new(&client).queue(&thumbnails, blocking(shrink)).run().await
/// # }
/// ```
pub fn blocking<F>(handler: F) -> Blocking<F> {
    Blocking(handler)
}

/// What [`blocking`] makes of a function.
#[derive(Clone, Copy, Debug)]
pub struct Blocking<F>(F);

macro_rules! impl_handlers {
    ($($argument:ident)*) => {
        impl<T, S, $($argument: FromContext<T, S>,)*> FromContext<T, S> for ($($argument,)*) {
            #[allow(unused_variables)]
            fn from_context(context: &Context, data: &S) -> Result<Self, Failure> {
                Ok(($($argument::from_context(context, data)?,)*))
            }
        }

        impl<Function, Running, T, S, $($argument,)*> Handler<T, S, (Running, $($argument,)*)> for Function
        where
            Function: Fn($($argument),*) -> Running + Clone + Send + Sync + 'static,
            Running: Future<Output: IntoVerdict> + Send + 'static,
            $($argument: FromContext<T, S>,)*
        {
            #[allow(non_snake_case)]
            fn call(&self, context: Context, data: &S) -> BoxFuture<'static, Result<Verdict, Failure>> {
                match <($($argument,)*) as FromContext<T, S>>::from_context(&context, data) {
                    Ok(($($argument,)*)) => self($($argument),*).map(IntoVerdict::into_verdict).boxed(),
                    Err(failure) => std::future::ready(Err(failure)).boxed(),
                }
            }
        }

        impl<Function, Done, T, S, $($argument,)*> Handler<T, S, (Done, $($argument,)*)> for Blocking<Function>
        where
            Function: Fn($($argument),*) -> Done + Clone + Send + Sync + 'static,
            Done: IntoVerdict + 'static,
            $($argument: FromContext<T, S> + Send + 'static,)*
        {
            #[allow(non_snake_case)]
            fn call(&self, context: Context, data: &S) -> BoxFuture<'static, Result<Verdict, Failure>> {
                match <($($argument,)*) as FromContext<T, S>>::from_context(&context, data) {
                    Ok(($($argument,)*)) => {
                        let Blocking(function) = self.clone();
                        elsewhere(move || function($($argument),*).into_verdict()).boxed()
                    }
                    Err(failure) => std::future::ready(Err(failure)).boxed(),
                }
            }
        }
    };
}

/// Runs it on a thread that may block; its panic goes on here.
async fn elsewhere(
    work: impl FnOnce() -> Result<Verdict, Failure> + Send + 'static,
) -> Result<Verdict, Failure> {
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(verdict) => verdict,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(Verdict::Release),
        },
    }
}

impl_handlers!();
impl_handlers!(A);
impl_handlers!(A B);
impl_handlers!(A B C);
impl_handlers!(A B C D);
impl_handlers!(A B C D E);
impl_handlers!(A B C D E F);
