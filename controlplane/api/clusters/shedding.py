"""Endpoints of load shedding: the ladder of a cluster, arming, history, drills."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import StrictInt

from controlplane.api.common.schemas import (
    ReasonIn,
    RequestBody,
    Time,
    below,
    columns_of,
    dataclass_schema,
    fields_of,
)
from controlplane.api.common.security import caller, cluster_of
from controlplane.formats.moments import shifted
from controlplane.models import SheddingInterval
from controlplane.planners.shedding import activation
from controlplane.planners.shedding.arming import arm, disarm
from controlplane.planners.shedding.drill import Drill, run_drill
from controlplane.planners.shedding.episodes import episodes
from controlplane.planners.shedding.history import intervals
from controlplane.planners.shedding.interval_costs import IntervalRecords, interval_costs
from controlplane.planners.shedding.report import LadderReport, ladder_report

router = Router(tags=["shedding"])
_DAY: Final = timedelta(days=1)
_INTERVAL: Final = "rung position started_at ended_at read dropped"


class LadderOut(
    fields_of(LadderReport, without="kept ladder given")  # type: ignore[misc]
):
    """The ladder of a cluster; if it is not armed, the one that arming would arm now.

    missing_code, missing: why there is none. position: of the newest batch, null without one.
    factor: the input over what the cluster can process without drops; headroom: how much more of
    the same mix it can process, as a share. active_rung: the one that a person activated, until
    active_until; 0: none. arm_at: when Weir arms the disarmed ladder again, null: never.
    provisional: costs are assumed up to a factor, so that factor is at most the real one.
    empty_batch_s: seconds of a micro-batch without records, null: not measured; longest_batch_s:
    of one with which the p95 latency is within its bound.
    """

    rung: int | None
    headroom: float | None


class IntervalOut(
    columns_of(  # type: ignore[misc]
        SheddingInterval,
        _INTERVAL,
        under="row",
        by_edge=list[list[int]],
        by_stream=list[list[int]],
    )
):
    """A time without a change of the rung; by_edge: rows of stream, query (0: input), records.

    Changes in its first 10 s belong to it: rung is the highest one. by_stream: rows of stream and
    records read. quality_lost: the part of the value of all records, null if it is not known;
    lossy_queries: how many queries lost records; queries: at most 100.
    """

    quality_lost: float | None
    lossy_queries: int
    queries: list[dataclass_schema(IntervalRecords)]  # type: ignore[valid-type]


class EpisodeOut(columns_of(SheddingInterval, _INTERVAL, under="cost.row")):  # type: ignore[misc]
    """The time from the first drop until nothing was dropped for two minutes.

    rung, position: the highest ones; kept: the mean part of the value of all records, null if it is
    not known. intervals: the newest first; is_over: false while it may go on.
    """

    kept: float | None
    lossy_queries: int = below("cost.lossy_queries", is_optional=False)
    queries: list[dataclass_schema(IntervalRecords)] = below("cost.queries", is_optional=False)  # type: ignore[valid-type]
    intervals: list[IntervalOut]
    is_over: bool


class DrillOut(fields_of(Drill)):  # type: ignore[misc]
    """What the ladder would have dropped; seconds: of a period, above_s: above the capacity."""

    dropped_share: float
    largest_factor: float


class ActivationIn(ReasonIn):
    """A rung to activate for so many minutes, and the reason, which is required."""

    rung: StrictInt
    minutes: StrictInt


class DisarmIn(ReasonIn):
    """The reason, which is required; minutes: Weir arms the ladder again after them, 0: never."""

    minutes: StrictInt = 0


class RangeIn(RequestBody):
    """A time range, by default the last day."""

    start: Time | None = None
    stop: Time | None = None

    def times(self) -> tuple[datetime, datetime]:
        """Return both ends."""
        stop = self.stop or datetime.now(UTC)
        return self.start or shifted(stop, -_DAY), stop


_RANGE: Any = Query(...)  # type: ignore[type-arg]


@router.get("/{slug}/shedding", response=LadderOut)
def get_ladder(request: HttpRequest, slug: str) -> Any:
    """Return the ladder of a cluster: rungs, what they keep per query, its position and age."""
    return ladder_report(cluster_of(request))


@router.post("/{slug}/shedding/arm", response=LadderOut)
def arm_ladder(request: HttpRequest, slug: str, body: ReasonIn) -> Any:
    """Compute the ladder for the present rates and arm it; the reason is required."""
    actor, cluster = caller(request), cluster_of(request)
    arm(actor, cluster, body.reason)
    return ladder_report(cluster)


@router.post("/{slug}/shedding/disarm", response=LadderOut)
def disarm_ladder(request: HttpRequest, slug: str, body: DisarmIn) -> Any:
    """Disarm the ladder: from the next batch on, records wait instead; the reason is required."""
    actor, cluster = caller(request), cluster_of(request)
    disarm(actor, cluster, body.reason, body.minutes)
    return ladder_report(cluster)


@router.post("/{slug}/shedding/activate", response=LadderOut)
def activate_rung(request: HttpRequest, slug: str, body: ActivationIn) -> Any:
    """Keep at least the position of a rung for some minutes; the reason is required."""
    actor, cluster = caller(request), cluster_of(request)
    activation.activate(actor, cluster, body.rung, body.minutes, body.reason)
    return ladder_report(cluster)


@router.post("/{slug}/shedding/release", response=LadderOut)
def release_rung(request: HttpRequest, slug: str, body: ReasonIn) -> Any:
    """End the activation of a rung now."""
    actor, cluster = caller(request), cluster_of(request)
    activation.release(actor, cluster, body.reason)
    return ladder_report(cluster)


@router.get("/{slug}/shedding/history", response=list[IntervalOut])
def list_intervals(request: HttpRequest, slug: str, given: RangeIn = _RANGE) -> Any:
    """Return when which rung dropped records in a time range, and what it cost each query.

    The newest first, at most 200.
    """
    cluster = cluster_of(request)
    return interval_costs(cluster, intervals(cluster, *given.times()))


@router.get("/{slug}/shedding/episodes", response=list[EpisodeOut])
def list_episodes(request: HttpRequest, slug: str, given: RangeIn = _RANGE) -> Any:
    """Return the episodes of load shedding in a time range with their intervals, the newest first.

    Of at most 1,000 intervals.
    """
    return episodes(cluster_of(request), *given.times(), datetime.now(UTC))


@router.get("/{slug}/shedding/drill", response=DrillOut)
def get_drill(request: HttpRequest, slug: str, given: RangeIn = _RANGE) -> Any:
    """Return what the ladder would have dropped in a past time range; changes nothing."""
    return run_drill(cluster_of(request), *given.times())
