use std::error::Error as StdError;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Any error, as handlers, codecs and tower's services give it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// How jobs of one type become bodies, and bodies jobs.
///
/// [`Json`] unless a queue is made with another, by [`Client::queue_with`](crate::Client::queue_with). Jobs wait for
/// weeks while types evolve: a codec must read what older versions of the program have written.
///
/// ```
/// use bytes::Bytes;
/// use delayline_tokio::{BoxError, Client, Codec};
/// use serde::{Deserialize, Serialize};
///
/// struct Postcard;
///
/// impl<T: Serialize + serde::de::DeserializeOwned> Codec<T> for Postcard {
///     fn content_type(&self) -> Option<&str> {
///         Some("application/postcard")
///     }
///     fn encode(&self, job: &T) -> Result<Bytes, BoxError> {
///         Ok(postcard::to_allocvec(job)?.into())
///     }
///     fn decode(&self, body: &Bytes, _: Option<&str>) -> Result<T, BoxError> {
///         Ok(postcard::from_bytes(body)?)
///     }
/// }
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Resize {
///     image: u64,
/// }
///
/// # #[cfg(feature = "memory")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let client = Client::connect("memory://").await?;
/// let resizes = client.queue_with("resizes", Postcard)?;
/// resizes.publish(&Resize { image: 17 }).await?;
/// let taken = resizes.take().await?;
/// assert_eq!(taken[0].content_type.as_deref(), Some("application/postcard"));
/// assert_eq!(resizes.decode(&taken[0])?, Resize { image: 17 });
/// # Ok::<(), delayline_tokio::Error>(())
/// # }).unwrap();
/// ```
pub trait Codec<T>: Send + Sync + 'static {
    /// The media type of what it writes, which is kept with the job.
    fn content_type(&self) -> Option<&str>;

    /// Writes a job.
    fn encode(&self, job: &T) -> Result<Bytes, BoxError>;

    /// Reads a job, whoever wrote it; `content_type` is what its publisher said.
    fn decode(&self, body: &Bytes, content_type: Option<&str>) -> Result<T, BoxError>;
}

/// JSON, whatever the content type says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    fn content_type(&self) -> Option<&str> {
        Some("application/json")
    }

    fn encode(&self, job: &T) -> Result<Bytes, BoxError> {
        Ok(serde_json::to_vec(job)?.into())
    }

    fn decode(&self, body: &Bytes, _: Option<&str>) -> Result<T, BoxError> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// Bodies as they are; their content type is whatever the publisher says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl Codec<Bytes> for Raw {
    fn content_type(&self) -> Option<&str> {
        None
    }

    fn encode(&self, job: &Bytes) -> Result<Bytes, BoxError> {
        Ok(job.clone())
    }

    fn decode(&self, body: &Bytes, _: Option<&str>) -> Result<Bytes, BoxError> {
        Ok(body.clone())
    }
}

/// A codec that knows its type but not its own name.
pub(crate) struct Coder<T> {
    codec: Arc<dyn Codec<T>>,
    job: PhantomData<fn() -> T>,
}

impl<T> Coder<T> {
    pub(crate) fn new(codec: impl Codec<T>) -> Coder<T> {
        Coder { codec: Arc::new(codec), job: PhantomData }
    }
}

impl<T> Clone for Coder<T> {
    fn clone(&self) -> Coder<T> {
        Coder { codec: self.codec.clone(), job: PhantomData }
    }
}

impl<T> std::ops::Deref for Coder<T> {
    type Target = dyn Codec<T>;

    fn deref(&self) -> &Self::Target {
        &*self.codec
    }
}
