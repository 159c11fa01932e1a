"""The ledger: predictions of executed plans against measurements.

An entry has three sets of figures. `approved`: those of the approved proposal. `expected`: those of
the applied actions (fewer if the execution was stopped, none after a rollback). `measured`: the
imbalance of mean loads, the replication factor, the mean p95 latency and the dropped part of the
input over the samples after the end; what its planner measures; bytes and pause of the steps. No
planner predicts the latency, so `approved` and `expected` have the latency before the execution.
`without` has what the placement before the plan would have given over the time of the samples
(`counterfactual`), and `without_error` the error of that model.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db import transaction

from algorithms.vocabulary import Floats
from controlplane.models import Cluster, Execution, LedgerEntry, Proposal
from controlplane.planning.adapters import measured_by, own_measures
from controlplane.planning.measures import cluster_values, measures
from controlplane.plans.plan import PlannedAction, task_moves
from controlplane.policies.assessment import LATENCY, PLANNED, Assessment
from controlplane.policies.measure_limits import cluster_limits
from controlplane.policies.store import policy_of
from controlplane.proposals.counterfactual import (
    MEASURES,
    SERIES,
    counterfactual,
    half_width,
    measured,
)
from controlplane.proposals.review import Review
from controlplane.telemetry.arrivals.catching_up import USUAL_S, catching_up, waiting_s
from controlplane.telemetry.grid import RAW, Grid, mean
from controlplane.telemetry.series import read
from controlplane.wire.routing.cluster_actions import SetDropRule, SetLadder

logger = logging.getLogger(__name__)

_SERIES = (*SERIES, "p95", "kept", "waiting")
# The first batches after the end process the backlog of the moves.
SKIPPED = timedelta(seconds=5)
# Records that wait at the begin of the samples, in seconds of deliveries: more are of before.
BEFORE_S = 1.0
# Samples of an entry: half a minute with batches of a second, enough to average out noise.
ENOUGH = 30
# The entry is written by then, with fewer samples for a slow or stopped cluster.
LATEST = timedelta(minutes=10)
# The period of the latency before the execution.
BEFORE = timedelta(minutes=1)
# A plan is compared with its counterfactual on the pages of nodes for so long.
LAST_PLAN = timedelta(days=1)
ENDED = (
    Proposal.State.DONE, Proposal.State.STOPPED, Proposal.State.STALE, Proposal.State.ROLLED_BACK,
)  # fmt: skip


def write_entries(now: datetime) -> int:
    """Write the entries of executions whose measures have settled; return how many."""
    ended = Execution.objects.filter(
        proposal__state__in=ENDED,
        proposal__ledger__isnull=True,
        finished_at__isnull=False,
        done__gt=0,
    ).select_related("proposal", "proposal__snapshot_row", "cluster")
    return sum(_written(execution, now) for execution in ended)


def _written(execution: Execution, now: datetime) -> bool:
    try:
        samples = _samples_after(execution)
        is_enough = len(samples) >= ENOUGH and not _shows_outage(execution, samples)
        if not is_enough and not _is_settled(execution, now):
            return False
        return _write(execution, samples, now)
    except Exception:
        # An error in one entry does not affect the others.
        logger.exception("No ledger entry of %s", execution)
        return False


def _is_settled(execution: Execution, now: datetime) -> bool:
    """Return whether no more samples are expected, or the maximum wait is over."""
    assert execution.finished_at is not None
    return now - execution.finished_at >= LATEST or _next_began(execution) is not None


def _next_began(execution: Execution) -> datetime | None:
    """Return the start of the cluster's next execution, which ends the samples of this one."""
    later = Execution.objects.filter(
        cluster=execution.cluster_id, started_at__gte=execution.finished_at
    ).exclude(pk=execution.pk)
    return later.order_by("started_at").values_list("started_at", flat=True).first()


def _begin(execution: Execution) -> datetime:
    assert execution.finished_at is not None
    return execution.finished_at + SKIPPED


def _samples_after(execution: Execution) -> Grid:
    begin = _begin(execution)
    end = begin - SKIPPED + LATEST
    ends = [moment for moment in (end, _next_began(execution)) if moment is not None]
    samples = read(execution.cluster, _SERIES, begin, min(ends), RAW)
    starts = range(max(1, len(samples) - ENOUGH + 1))
    windows = (samples.where(slice(start, start + ENOUGH)) for start in starts)
    steady = (window for window in windows if not _shows_outage(execution, window))
    return next(steady, samples.where(slice(-ENOUGH, None)))


def _shows_outage(execution: Execution, samples: Grid) -> bool:
    """Return whether samples show what was before them: records still wait, or were missed."""
    begin = samples.where(slice(0, 1))
    is_behind = waiting_s(samples) > USUAL_S or waiting_s(begin) > BEFORE_S
    return is_behind or catching_up(samples, execution.cluster.trigger_ms) is not None


def _write(execution: Execution, samples: Grid, now: datetime) -> bool:
    proposal = execution.proposal
    steps, started = _steps(execution), execution.started_at
    applied = applied_actions(execution, steps)
    before = read(execution.cluster, _SERIES, started - BEFORE, started, RAW)
    latency, sent = mean(before["p95"]), proposal.predicted.get("bytes")
    without, without_error = _without(execution, applied, samples)
    measurements = _measured(execution, steps, samples)
    figures = _known(latency_ms=latency, dropped=_dropped(before))
    # As it was when it was approved, not when it was computed.
    shown = Review.stored(proposal.review) or proposal
    known = cluster_values(shown.before) | figures | without
    noise = _known(latency_ms=_noise(before["p95"], samples["p95"]))
    effects = Assessment.of(known, measurements, without_error | noise, _limits(proposal))
    with transaction.atomic():
        # Idempotent: an attempt after a crash writes nothing twice.
        _, created = LedgerEntry.objects.get_or_create(
            proposal=proposal,
            defaults={
                "cluster": execution.cluster,
                "planner": proposal.planner,
                "algorithm": proposal.algorithm,
                "approved": _figures(proposal, shown.after, sent, latency),
                "expected": _expected(proposal, applied, latency),
                "measured": measurements,
                "assessment": effects.to_json(),
                "without": without,
                "without_error": without_error,
                "outcome": proposal.state,
                "applied": len(applied),
                "skipped": sum(
                    len(step["skipped"])
                    for step in steps
                    if step["direction"] == Execution.Direction.FORWARD
                ),
                "samples": len(samples),
                "at": now,
            },
        )
    return created


def _noise(*series: Floats) -> float | None:
    """Return the half width within which 80 % of the batches differ from their series' mean."""
    return half_width(np.concatenate([values - (mean(values) or 0.0) for values in series]))


def _limits(proposal: Proposal) -> dict[str, float]:
    policy = policy_of(proposal.cluster)
    return cluster_limits(proposal.cluster, policy) | {LATENCY: float(policy.latency_ms)}


def _without(
    execution: Execution, applied: Sequence[PlannedAction], samples: Grid
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the means without the plan, and the errors of the model; {} if nothing is known."""
    since = execution.finished_at
    if since is None or not len(samples) or not applied or execution.proposal.snapshot_row is None:
        return {}, {}
    stop = samples.starts[-1]
    # A period of ten seconds is stored when it is complete.
    result = counterfactual(execution, applied, since - SKIPPED, max(stop, since + SKIPPED))
    if result is None:
        return {}, {}
    means = {name: result.mean_without(name, since) for name in MEASURES}
    # The model has the loads of all arriving records: so what a plan drops is not an error of it.
    drops = any(isinstance(planned.action, (SetDropRule, SetLadder)) for planned in applied)
    errors = {} if drops else {name: result.interval(name, since) for name in means}
    return _known(**means), _known(**errors)


def _steps(execution: Execution) -> list[dict[str, Any]]:
    columns = ("direction", "first", "stop", "skipped", "inverses", "bytes", "pause_ms")
    return list(execution.steps.order_by("number").values(*columns))


def applied_actions(
    execution: Execution, steps: Sequence[Mapping[str, Any]] | None = None
) -> list[PlannedAction]:
    """Return the actions that are in effect after an execution, in the order of the plan.

    `steps`: those of the execution, if they were read before.
    """
    steps = _steps(execution) if steps is None else steps
    plan, applied, rollback = execution.proposal.plan, list[int](), rollback_places(steps)
    for step in steps:
        places = [place for place, _ in step["inverses"]]
        if step["direction"] == Execution.Direction.FORWARD:
            applied += places
        elif places:
            reverted = {rollback[place] for place in places}
            applied = [place for place in applied if place not in reverted]
    return [plan[place] for place in applied]


def last_applied(cluster: Cluster, stop: datetime) -> tuple[Execution, list[PlannedAction]] | None:
    """Return the last execution that ended before `stop`, and its actions that are in effect.

    None without one in the day before, or if all its actions were reverted.
    """
    recent = Execution.objects.filter(
        cluster=cluster, finished_at__gt=stop - LAST_PLAN, finished_at__lt=stop
    )
    execution = (
        recent.exclude(proposal__snapshot_row=None)
        .select_related("proposal", "cluster")
        .order_by("-finished_at")
        .first()
    )
    if execution is None:
        return None
    applied = applied_actions(execution)
    return (execution, applied) if applied else None


def rollback_places(steps: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the place of the reverted action, for each action of the rollback in its order."""
    forward = [step for step in steps if step["direction"] == Execution.Direction.FORWARD]
    return [
        place
        for step in reversed(forward)
        for place, inverse in reversed(step["inverses"])
        for _ in inverse
    ]


def _expected(
    proposal: Proposal, applied: Sequence[PlannedAction], latency: float | None
) -> dict[str, float]:
    if proposal.snapshot_row is None:
        raise ValueError(f"{proposal} has no snapshot")
    sent = sum(move.bytes for move in task_moves(applied))
    own = own_measures(proposal.planner)
    return _figures(proposal, measures(proposal.snapshot, applied, own), sent, latency)


def _figures(
    proposal: Proposal, after: Mapping[str, Any], sent: int | None, latency: float | None
) -> dict[str, float]:
    values = cluster_values(after)
    return _known(
        imbalance=values.get("imbalance"),
        fullest=values.get("fullest"),
        traffic=values.get("traffic"),
        replication_factor=values.get("replication_factor"),
        bytes=sent,
        pause_ms=proposal.predicted.get("pause_ms"),
        latency_ms=latency,
        **{name: values.get(name) for name in PLANNED},
    )


def _measured(
    execution: Execution, steps: Sequence[Mapping[str, Any]], samples: Grid
) -> dict[str, float]:
    proposal = execution.proposal
    own: Mapping[str, float] = {}
    figures: Mapping[str, Floats] = {}
    if len(samples):
        own = measured_by(proposal.planner, execution.cluster, _begin(execution))
        capacities = np.array([node.capacity for node in proposal.snapshot.nodes], np.float64)
        figures = measured(samples.window(), capacities)
    pauses = [step["pause_ms"] for step in steps if step["pause_ms"] is not None]
    return _known(
        **{name: float(values[0]) for name, values in figures.items() if not np.isnan(values[0])},
        bytes=sum(step["bytes"] for step in steps),
        pause_ms=max(pauses, default=None),
        latency_ms=mean(samples["p95"]),
        dropped=_dropped(samples),
        **own,
    )


def _dropped(samples: Grid) -> float | None:
    """Return the mean part of the records read that is dropped, None if it is not measured."""
    kept = mean(samples["kept"])
    return None if kept is None else 1 - kept


def _known(**figures: float | None) -> dict[str, float]:
    return {name: value for name, value in figures.items() if value is not None}
