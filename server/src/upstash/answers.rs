use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use delayline_tokio::redis::Value;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::item::{Encoding, Item};
use super::refusal::Refusal;
use super::resp;

/// So much of each answer is not counted: small ones find room whatever the large ones do. Connections are counted.
const UNCOUNTED: usize = 16 << 10;
const KIB: usize = 1 << 10;
/// How long an answer waits for others to be read.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a reply takes beside its bytes, at least.
const BESIDE: usize = 4;

/// In which form a client wants replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json(Encoding),
    Resp2,
}

/// What came of a command.
pub(super) type Reply = Result<Value, Refusal>;

/// What came of a request.
pub(super) enum Replies {
    One(Reply),
    Several(Vec<Reply>),
}

/// Writes answers, each of a bounded size, and all that are not read yet within a bounded memory.
pub(super) struct Answers {
    max_bytes: usize,
    kib: Arc<Semaphore>,
}

/// The bytes of an answer: they count until the system has them.
struct Counted {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

/// Bytes that are written, up to a limit.
struct Limited {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl Answers {
    /// `max_bytes` of an answer, and `memory` for all of them.
    pub(super) fn new(max_bytes: usize, memory: usize) -> Answers {
        let kib = Arc::new(Semaphore::new((memory / KIB).min(Semaphore::MAX_PERMITS)));
        Answers { max_bytes, kib }
    }

    /// The answer that says this. All commands were executed, also if it is refused.
    pub(super) async fn response(&self, replies: Replies, form: Form) -> Result<Response, Refusal> {
        let size = match &replies {
            Replies::One(reply) => weight_of(reply),
            Replies::Several(replies) => replies.iter().map(weight_of).sum(),
        };
        if size > self.max_bytes {
            return Err(self.too_large());
        }
        let mut room = self.room(size).await?;
        let (status, content_type, bytes) = match form {
            Form::Json(encoding) => self.json(&replies, encoding)?,
            Form::Resp2 => self.resp2(&replies)?,
        };
        drop(replies);
        if bytes.len() > size {
            let more = self.room_beyond(size, bytes.len()).await?;
            room = match (room, more) {
                (Some(mut room), Some(more)) => {
                    room.merge(more);
                    Some(room)
                }
                (room, more) => room.or(more),
            };
        }
        let body = Body::from(Bytes::from_owner(Counted { bytes, _room: room }));
        Ok((status, [(header::CONTENT_TYPE, content_type)], body).into_response())
    }

    fn json(
        &self,
        replies: &Replies,
        encoding: Encoding,
    ) -> Result<(StatusCode, &'static str, Vec<u8>), Refusal> {
        let item = |reply| Item::of(reply, encoding);
        let (status, written) = match replies {
            Replies::One(reply) => (status(reply), self.written(&item(reply))?),
            Replies::Several(replies) => {
                (StatusCode::OK, self.written(&replies.iter().map(item).collect::<Vec<Item>>())?)
            }
        };
        Ok((status, "application/json", written))
    }

    fn written(&self, document: &impl Serialize) -> Result<Vec<u8>, Refusal> {
        let mut limited = self.limited();
        serde_json::to_writer(&mut limited, document).map_err(|_| self.too_large())?;
        Ok(limited.bytes)
    }

    fn resp2(&self, replies: &Replies) -> Result<(StatusCode, &'static str, Vec<u8>), Refusal> {
        let mut limited = self.limited();
        let mut write = |reply: &Reply| match reply {
            Ok(value) => resp::write(value, &mut limited),
            Err(refusal) => resp::write_error(&refusal.to_string(), &mut limited),
        };
        let (status, written) = match replies {
            Replies::One(reply) => (status(reply), write(reply)),
            Replies::Several(replies) => (StatusCode::OK, replies.iter().try_for_each(write)),
        };
        written.map_err(|_| self.too_large())?;
        Ok((status, "application/octet-stream", limited.bytes))
    }

    fn limited(&self) -> Limited {
        Limited { bytes: Vec::new(), max_bytes: self.max_bytes }
    }

    async fn room(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
        self.room_beyond(0, bytes).await
    }

    /// Room for an answer that has these bytes, and has room for `had` of them.
    async fn room_beyond(&self, had: usize, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
        let kib = |bytes: usize| bytes.saturating_sub(UNCOUNTED).div_ceil(KIB);
        let wanted = u32::try_from(kib(bytes) - kib(had)).map_err(|_| Refusal::NoRoomForAnswer)?;
        if wanted == 0 {
            return Ok(None);
        }
        match timeout(PATIENCE, Arc::clone(&self.kib).acquire_many_owned(wanted)).await {
            Ok(Ok(room)) => Ok(Some(room)),
            _ => Err(Refusal::NoRoomForAnswer),
        }
    }

    fn too_large(&self) -> Refusal {
        Refusal::AnswerTooLarge { limit: self.max_bytes }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn status(reply: &Reply) -> StatusCode {
    match reply {
        Ok(Value::ServerError(_)) | Err(_) => StatusCode::BAD_REQUEST,
        Ok(_) => StatusCode::OK,
    }
}

fn weight_of(reply: &Reply) -> usize {
    reply.as_ref().map_or(BESIDE, weight)
}

/// How many bytes it has in an answer, at least.
fn weight(value: &Value) -> usize {
    let bytes = match value {
        Value::BulkString(bytes) => bytes.len(),
        Value::SimpleString(text) => text.len(),
        Value::Array(values) => values.iter().map(weight).sum(),
        _ => 0,
    };
    // One digit and a comma are less.
    bytes + if matches!(value, Value::Int(_)) { 2 } else { BESIDE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    fn bulk(bytes: usize) -> Replies {
        Replies::One(Ok(Value::BulkString(vec![b'x'; bytes])))
    }

    const TEXT: Form = Form::Json(Encoding::Text);

    #[tokio::test]
    async fn an_answer_beyond_the_limit_is_refused_in_each_form() {
        let answers = Answers::new(100, 1 << 20);
        for form in [TEXT, Form::Json(Encoding::Base64), Form::Resp2] {
            assert!(answers.response(bulk(60), form).await.is_ok(), "{form:?}");
            let refused = answers.response(bulk(101), form).await;
            assert!(matches!(refused, Err(Refusal::AnswerTooLarge { limit: 100 })), "{form:?}");
        }
        // Escapes and base64 count as they are written.
        let control = Replies::One(Ok(Value::BulkString(vec![1; 60])));
        assert!(answers.response(control, TEXT).await.is_err());
        assert!(answers.response(bulk(80), Form::Json(Encoding::Base64)).await.is_err());
        let many = Replies::Several((0..60).map(|_| Ok(Value::Int(1))).collect());
        assert!(answers.response(many, TEXT).await.is_err());
    }

    #[tokio::test]
    async fn answers_that_are_not_read_hold_up_large_ones_and_no_small_ones() {
        let answers = Answers::new(1 << 20, 1 << 20);
        let unread = answers.response(bulk(700 << 10), TEXT).await.unwrap();
        assert!(matches!(answers.response(bulk(700 << 10), TEXT).await, Err(Refusal::NoRoomForAnswer)));
        assert!(answers.response(bulk(10 << 10), TEXT).await.is_ok());
        let bytes = to_bytes(unread.into_body(), usize::MAX).await.unwrap();
        assert!(matches!(answers.response(bulk(700 << 10), TEXT).await, Err(Refusal::NoRoomForAnswer)));
        drop(bytes);
        assert!(answers.response(bulk(700 << 10), TEXT).await.is_ok());
    }

    #[tokio::test]
    async fn what_escapes_add_is_counted_too() {
        let answers = Answers::new(1 << 20, 1 << 20);
        let control = |bytes| Replies::One(Ok(Value::BulkString(vec![1; bytes])));
        let unread = answers.response(control(150 << 10), TEXT).await.unwrap();
        assert!(matches!(answers.response(bulk(300 << 10), TEXT).await, Err(Refusal::NoRoomForAnswer)));
        drop(unread);
        assert!(answers.response(bulk(300 << 10), TEXT).await.is_ok());
    }
}
