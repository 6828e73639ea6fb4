use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use delayline_http::Problem;
use delayline_http::body::{DOCUMENT_BYTES, JSON_BYTES, document_too_large, json_too_large, unexpected};
use futures_util::{Stream, StreamExt, stream};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::service::app::Shared;
use crate::service::limits::Patience;
use crate::service::lines::{Line, Lines};
use crate::service::pace::{Pace, TooSlow};
use crate::service::peers::NoRoom;
use crate::service::rejection::Rejection;
use crate::service::request_context::RequestContext;

/// How long what is left of a body is read that nobody wants: until then its sender may not look for the answer.
const LINGER: Duration = Duration::from_secs(2);

/// How much of a body is read before others have their turn.
const TURN: usize = 256 << 10;

/// The body of a request, on its way.
pub(crate) struct Inbound {
    chunks: BodyDataStream,
    /// How many bytes it says it has, or has at least.
    announced: u64,
    /// Its sender waits to be told to go on.
    is_held_back: bool,
    context: Arc<RequestContext>,
    pace: Pace,
    /// It does not say how many bytes it has: they count for its client as they come.
    is_metered: bool,
    /// How many bytes were read since others had their turn.
    turn: usize,
}

/// Why a body was not read.
pub(crate) enum Unread {
    TooLarge,
    TooSlow(TooSlow),
    NoRoom,
    Broken(axum::Error),
}

impl Unread {
    /// The problem that it is, if one that is too large is `too_large`.
    pub(crate) fn problem(self, too_large: impl FnOnce() -> Problem) -> Problem {
        match self {
            Unread::TooLarge => too_large(),
            Unread::TooSlow(slow) => Problem::new(408, "body_timeout", slow),
            Unread::NoRoom => Problem::busy(
                "bodies take all the memory that they may, as --max-body-memory says: try again, or send less at once",
            ),
            Unread::Broken(error) => Problem::bad("bad_body", format!("the body broke off: {error}")),
        }
    }
}

impl FromRequest<Shared> for Inbound {
    type Rejection = Infallible;

    async fn from_request(request: Request, app: &Shared) -> Result<Inbound, Infallible> {
        let (parts, body) = request.into_parts();
        Ok(Inbound::of(&parts, body, app.patience))
    }
}

impl Inbound {
    /// The body of a request.
    pub(crate) fn of(parts: &Parts, body: Body, patience: Patience) -> Inbound {
        Inbound {
            is_metered: body.size_hint().exact().is_none(),
            announced: body.size_hint().lower(),
            is_held_back: parts.headers.contains_key(header::EXPECT),
            chunks: body.into_data_stream(),
            context: Arc::clone(RequestContext::of(&parts.extensions)),
            pace: Pace::new(patience),
            turn: 0,
        }
    }

    /// How many bytes it says it has, or has at least.
    pub(crate) fn announced(&self) -> usize {
        usize::try_from(self.announced).unwrap_or(usize::MAX)
    }

    /// The whole body, if it has at most `limit` bytes. What says that it has more is not read.
    pub(crate) async fn whole(mut self, limit: usize) -> Result<Bytes, Unread> {
        let read = self.read(limit).await;
        if matches!(read, Err(Unread::TooLarge | Unread::NoRoom)) {
            self.linger();
        }
        read
    }

    async fn read(&mut self, limit: usize) -> Result<Bytes, Unread> {
        if self.announced > limit as u64 {
            return Err(Unread::TooLarge);
        }
        // Room for the whole at once: what grows is there twice for a while, and of many bodies that each have room for a part
        // none comes to its end.
        let announced = self.announced();
        self.holds(announced).await?;
        let mut read = BytesMut::with_capacity(announced);
        while let Some(chunk) = self.next().await? {
            if read.len() + chunk.len() > limit {
                return Err(Unread::TooLarge);
            }
            if announced == 0 {
                self.holds(chunk.len()).await?;
            }
            read.extend_from_slice(&chunk);
        }
        Ok(read.freeze())
    }

    /// So many bytes of it stay in memory.
    pub(crate) async fn holds(&mut self, bytes: usize) -> Result<(), Unread> {
        self.context.peer.holds(bytes).await.map_err(|NoRoom| Unread::NoRoom)
    }

    /// What comes next, unless it does not come.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Unread> {
        if self.turn >= TURN {
            self.turn = 0;
            yield_now().await;
        }
        let reading = self.context.peer.reads();
        let chunk = self.pace.keep(self.chunks.next()).await;
        drop(reading);
        let chunk = chunk.map_err(Unread::TooSlow)?.transpose().map_err(Unread::Broken)?;
        let bytes = chunk.as_ref().map_or(0, Bytes::len);
        self.turn += bytes;
        self.pace.came(bytes);
        if self.is_metered
            && let Some(client) = self.context.client
        {
            self.context.peer.sends(client, bytes as u64);
        }
        Ok(chunk)
    }

    /// The lines of the body, as they come. Whoever gets one lets go of its bytes.
    pub(crate) fn lines(&mut self, limit: usize) -> impl Stream<Item = Result<Line, Unread>> {
        stream::try_unfold((self, Lines::new(limit)), async |(body, mut lines)| {
            loop {
                let line = lines.pop();
                body.context.peer.lets_go(lines.dropped());
                if let Some((_, line)) = line {
                    return Ok(Some((line, (body, lines))));
                }
                match body.next().await? {
                    Some(chunk) => {
                        body.holds(chunk.len()).await?;
                        lines.push(&chunk);
                    }
                    None => return Ok(lines.last().map(|(_, line)| (line, (body, lines)))),
                }
            }
        })
    }

    /// A body of JSON.
    pub(crate) async fn json(self) -> Result<Bytes, Problem> {
        self.whole(JSON_BYTES).await.map_err(|unread| unread.problem(json_too_large))
    }

    /// A body of JSON that says one thing.
    pub(crate) async fn document(self) -> Result<Bytes, Problem> {
        self.whole(DOCUMENT_BYTES).await.map_err(|unread| unread.problem(document_too_large))
    }

    /// No body.
    pub(crate) async fn none(self) -> Result<Bytes, Problem> {
        self.whole(0).await.map_err(|unread| unread.problem(unexpected))
    }

    /// Reads on for a while, beside the answer, so that a sender who writes first and reads then comes to read it. One that
    /// waits to be told to go on reads already.
    pub(crate) fn linger(mut self) {
        if self.is_held_back || self.chunks.is_end_stream() {
            return;
        }
        let serving = self.context.peer.also_serves();
        tokio::spawn(async move {
            let _ = timeout(LINGER, self.drain()).await;
            drop(serving);
        });
    }

    /// Reads what is left, for nothing.
    pub(crate) async fn drain(&mut self) {
        while let Ok(Some(_)) = self.next().await {}
    }
}

/// The absence of a body: one that is not read hides from us that its sender has gone, and what it says is ignored.
pub(crate) struct Empty;

impl FromRequest<Shared> for Empty {
    type Rejection = Rejection;

    async fn from_request(request: Request, app: &Shared) -> Result<Empty, Rejection> {
        let Ok(body) = Inbound::from_request(request, app).await;
        body.none().await?;
        Ok(Empty)
    }
}
