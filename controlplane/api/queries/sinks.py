"""Endpoints of the sinks of a query, and of the results that their destinations refused."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import Field

from controlplane.access.roles import ADMIN
from controlplane.api.common.schemas import CountOut, ReasonIn, RequestBody, columns_of, shown
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.catalog.queries import query_by_name
from controlplane.models import Query, RefusedResult, Sink
from controlplane.sinks import service
from controlplane.sinks.service import CORRECTIONS, MODES, SinkSpec
from controlplane.sinks.status import SinkStatus, statuses_of

router = Router(tags=["sinks"])
SINKS = "/{slug}/queries/{query}/sinks"
SINK = f"{SINKS}/{{sink}}"


class ResultSinkIn(RequestBody):
    """A sink: kind is postgres, kafka, parquet, http or stream; settings are those of the kind.

    mode: final_only or every_change. corrections: update or count. start: now, oldest or a time.
    """

    name: str = Field(max_length=service.MAX_NAME)
    kind: str = Field(max_length=20)
    settings: dict[str, Any] = Field(default_factory=dict)
    mode: str = Field(MODES[0], max_length=20)
    corrections: str = Field(CORRECTIONS[0], max_length=20)
    start: str = Field(service.NOW, max_length=40)
    paused: bool = False

    def spec(self) -> SinkSpec:
        """Return the sink of the request."""
        return SinkSpec(**self.model_dump())


class SinkReplayIn(RequestBody):
    """Where a replay begins: oldest, now, or the first start of a window (ISO 8601)."""

    start: str = Field(service.OLDEST, max_length=40)


class ResultSinkOut(
    columns_of(  # type: ignore[misc]
        Sink,
        "id name kind mode corrections paused written refused corrected lost lost_at written_at"
        " error failures failing_since retry_at created_by created_at",
        under="sink",
        settings=dict[str, Any],
    )
):
    """A sink. written, refused, corrected and lost count results; lost were deleted unread.

    lag_s: for how long it has not written everything; waiting: results, at most 100,000;
    refused_kept: refused results that can be written again.
    """

    model_config = shown("name kind state waiting lag_s written refused lost error")

    state: str
    lag_s: float
    waiting: int
    refused_kept: int
    guarantee: str


class RefusedResultOut(
    columns_of(RefusedResult, "reason requested refused_at", row=dict[str, Any])  # type: ignore[misc]
):
    """A result that the destination refused, with the reason."""


@router.get(SINKS, response=list[ResultSinkOut])
def list_sinks(request: HttpRequest, slug: str, query: str) -> Any:
    """List the sinks of a query by name, at most ten."""
    return statuses_of(service.sinks_of(_query(request, query)))


@router.post(SINKS, response={201: ResultSinkOut}, auth=open_to(ADMIN))
def add_sink(request: HttpRequest, slug: str, query: str, body: ResultSinkIn) -> Any:
    """Add a sink to a live query. Requires the role admin: it decides where results go.

    Destinations must be in the list of the site, or public by https.
    """
    sink = service.add(caller(request), _query(request, query), body.spec())
    return Status(201, _shown(sink))


@router.get(SINK, response=ResultSinkOut)
def get_sink(request: HttpRequest, slug: str, query: str, sink: str) -> Any:
    """Return a sink."""
    return _shown(_sink(request, query, sink))


@router.put(SINK, response=ResultSinkOut, auth=open_to(ADMIN))
def change_sink(request: HttpRequest, slug: str, query: str, sink: str, body: ResultSinkIn) -> Any:
    """Change settings, mode and corrections of a sink, which goes on from its position."""
    return _shown(service.change(caller(request), _sink(request, query, sink), body.spec()))


@router.delete(SINK, response={204: None}, auth=open_to(ADMIN))
def remove_sink(request: HttpRequest, slug: str, query: str, sink: str) -> Any:
    """Remove a sink; what it has written stays."""
    service.remove(caller(request), _sink(request, query, sink))
    return HttpResponse(status=204)


@router.post(f"{SINK}/pause", response=ResultSinkOut)
def pause_sink(request: HttpRequest, slug: str, query: str, sink: str, body: ReasonIn) -> Any:
    """Pause a sink; results wait."""
    row = _sink(request, query, sink)
    return _shown(service.set_paused(caller(request), row, paused=True, reason=body.reason))


@router.post(f"{SINK}/resume", response=ResultSinkOut)
def resume_sink(request: HttpRequest, slug: str, query: str, sink: str) -> Any:
    """Let a paused sink go on from its position."""
    return _shown(service.set_paused(caller(request), _sink(request, query, sink), paused=False))


@router.post(f"{SINK}/retry", response=ResultSinkOut)
def retry_sink(request: HttpRequest, slug: str, query: str, sink: str) -> Any:
    """Let a failing sink try again at once."""
    return _shown(service.retry(caller(request), _sink(request, query, sink)))


@router.post(f"{SINK}/replay", response=ResultSinkOut, auth=open_to(ADMIN))
def replay_sink(request: HttpRequest, slug: str, query: str, sink: str, body: SinkReplayIn) -> Any:
    """Write the stored results again, from a start on."""
    return _shown(service.replay(caller(request), _sink(request, query, sink), body.start))


@router.get(f"{SINK}/refused", response=list[RefusedResultOut])
def list_refused_results(request: HttpRequest, slug: str, query: str, sink: str) -> Any:
    """List the refused results of a sink, the newest first, at most 1,000."""
    return service.refused_of(_sink(request, query, sink))


@router.post(f"{SINK}/refused/replay", response=CountOut)
def replay_refused_results(request: HttpRequest, slug: str, query: str, sink: str) -> Any:
    """Write all refused results again, as they are then."""
    return CountOut(count=service.replay_refused(caller(request), _sink(request, query, sink)))


@router.delete(f"{SINK}/refused", response=CountOut)
def delete_refused_results(request: HttpRequest, slug: str, query: str, sink: str) -> Any:
    """Delete all refused results of a sink."""
    return CountOut(count=service.delete_refused(caller(request), _sink(request, query, sink)))


def _query(request: HttpRequest, query: str) -> Query:
    return query_by_name(cluster_of(request), query)


def _sink(request: HttpRequest, query: str, sink: str) -> Sink:
    return service.sink_of(_query(request, query), sink)


def _shown(sink: Sink) -> SinkStatus:
    return statuses_of([sink])[0]
