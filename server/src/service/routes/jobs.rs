use std::time::SystemTime;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use delayline_core::Command;
use delayline_http::{
    Cancel, CancelMany, Edit, ForceRelease, Inspect, JobPage, JobState, Options, Patch, Problem, Publish,
    RescheduleMany, Response as Answer, Time,
};
use delayline_tokio::{Cursor, Edited, Error, JobId, QueueName, UnixMs, Verdict};

use super::options::{Said, headers_of};
use super::path::InPath;
use crate::service::app::Shared;
use crate::service::body::{Empty, Inbound};
use crate::service::rejection::{Rejection, problem, respond};

pub(super) async fn publish(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    request: Request,
) -> Result<Response, Rejection> {
    let (parts, body) = request.into_parts();
    let (publish, draft) = {
        let headers = headers_of(&parts.headers);
        let options = Options::new(parts.uri.query().unwrap_or_default(), &headers)?;
        Publish::read(queue, options, &headers)?
    };
    let body = Inbound::of(&parts, body, app.patience);
    let body = body.whole(app.max_payload.bytes).await;
    let body = body.map_err(|unread| unread.problem(|| app.max_payload.exceeded()))?;
    let draft = publish.with_body(draft, body)?;
    let published = app.publish(&publish.queue, draft).await?;
    let found = if published.duplicate { app.inspect(&publish.queue, &published.id).await } else { Ok(None) };
    Ok(respond(publish.answer(&published, found)?))
}

pub(super) async fn inspect(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
) -> Result<Response, Rejection> {
    let inspect = Inspect::read(queue, id, options)?;
    let found = app.inspect(&inspect.queue, &inspect.id).await?;
    Ok(respond(inspect.answer(found)?))
}

pub(super) async fn cancel(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let cancel = Cancel::read(queue, id, options)?;
    let outcome = app.client.bytes(&cancel.queue)?.cancel(&cancel.id).await?;
    Ok(respond(cancel.answer(outcome)?))
}

pub(super) async fn reschedule(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    match Patch::read(queue, id, &body.json().await?)? {
        Patch::Due(reschedule) => {
            let queue = app.client.bytes(&reschedule.queue)?;
            let rescheduled = queue.reschedule(&reschedule.id, reschedule.due).await?;
            Ok(respond(reschedule.answer(rescheduled.outcome, rescheduled.due)?))
        }
        Patch::Edit(edit) => {
            let queue = app.client.bytes(&edit.queue)?;
            Ok(respond(edited(&edit, queue.edit(&edit.id, &edit.changes).await?)?))
        }
    }
}

fn edited(edit: &Edit, edited: Edited) -> Result<Answer, Problem> {
    match edited {
        Edited::Done { due } => Ok(edit.done(due)),
        Edited::Gone => Err(edit.gone()),
        Edited::Contended => Err(edit.contended()),
        Edited::NotEditable(why) => Err(edit.refused(why)),
    }
}

pub(super) async fn release(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    InPath(id): InPath<JobId>,
    Said(options): Said,
    _: Empty,
) -> Result<Response, Rejection> {
    let release = ForceRelease::read(queue, id, options)?;
    let found = app.inspect(&release.queue, &release.id).await?;
    let lease = release.lease(found.as_ref())?;
    let settled = app.client.settle(lease, Verdict::Release).await?;
    Ok(respond(release.answer(settled)?))
}

/// The jobs in one state, a page at a time: those from `after` on, and before `before`.
pub(super) async fn list(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(mut options): Said,
) -> Result<Json<JobPage>, Rejection> {
    let state: Option<JobState> = options.read("state")?;
    let after: Option<Time> = options.read("after")?;
    let before: Option<Time> = options.read("before")?;
    let cursor: Option<Cursor> = options.read("cursor")?;
    let count = options.in_range("count", 1..=256)?.unwrap_or(100);
    options.finish()?;
    let JobState(place) = state.ok_or_else(|| {
        Problem::bad("bad_option", "no state is named: add state=ready, delayed, leased or dead")
    })?;
    let from = cursor.max(after.and_then(|after| Cursor::since(after.0)));
    let mut page = app.client.bytes(&queue)?.list(place, count, from.as_ref()).await?;
    let is_wanted = |at: UnixMs| before.is_none_or(|before| at < before.0);
    if let Some(end) = page.items.iter().position(|job| !is_wanted(job.at)) {
        page.items.truncate(end);
        page.next = None;
    }
    Ok(Json(JobPage::new(&queue, page.items, page.next.as_ref())))
}

pub(super) async fn cancel_many(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let (cancel, ids) = CancelMany::read(&body.json().await?)?;
    let queue = app.client.bytes(&queue)?;
    let outcomes = each(ids, |ids| queue.cancel_all(ids)).await;
    Ok(respond(cancel.answer(outcomes)))
}

pub(super) async fn reschedule_many(
    State(app): State<Shared>,
    InPath(queue): InPath<QueueName>,
    Said(options): Said,
    body: Inbound,
) -> Result<Response, Rejection> {
    options.finish()?;
    let (reschedule, moves) = RescheduleMany::read(&body.json().await?, wall())?;
    let queue = app.client.bytes(&queue)?;
    let moves = moves.into_iter().map(|(id, due)| (id, due.into())).collect();
    let outcomes = each(moves, |moves| queue.reschedule_all(moves)).await;
    let outcomes = outcomes.into_iter().map(|moved| moved.map(|moved| (moved.outcome, moved.due)));
    Ok(respond(reschedule.answer(outcomes)))
}

/// Changes as many at once as the queue takes. A change that fails says so of its own jobs alone.
async fn each<T: Clone, O, F>(all: Vec<T>, change: impl Fn(Vec<T>) -> F) -> Vec<Result<O, Problem>>
where
    F: Future<Output = Result<Vec<O>, Error>>,
{
    let mut outcomes = Vec::with_capacity(all.len());
    for some in all.chunks(Command::JOBS_MAX) {
        match change(some.to_vec()).await {
            Ok(changed) => outcomes.extend(changed.into_iter().map(Ok)),
            Err(error) => {
                let problem = problem(error);
                outcomes.extend(some.iter().map(|_| Err(problem.clone())));
            }
        }
    }
    outcomes
}

fn wall() -> UnixMs {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
