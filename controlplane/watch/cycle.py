"""One cycle of the watch loops on a cluster: observe, decide, request plans, log decisions."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import Max

from controlplane.health.summary import is_idle
from controlplane.models import Cluster, Execution, Proposal
from controlplane.planning.measures import STRANDED
from controlplane.plans.proposal_states import APPROVED
from controlplane.policies.blackouts import blackout_until, in_blackout
from controlplane.policies.measure_limits import measure_limits
from controlplane.policies.store import policy_of
from controlplane.proposals.approval_lock import LockCode, lock_of
from controlplane.telemetry.arrivals.catching_up import oldest_s
from controlplane.watch.decision import Situation, decide
from controlplane.watch.decision_log import last_decision, last_request, record_decision
from controlplane.watch.loop import WatchLoop
from controlplane.watch.loops import all_loops, loop_named
from controlplane.watch.observation import ClusterObservation
from controlplane.watch.planner_request import (
    FRUITLESS,
    OPEN,
    planners_for,
    request_plan,
    watch_proposals,
)
from controlplane.watch.reading import LoopReading
from controlplane.watch.review import loop_of, proposals_beside, review_waiting

# Other locks are of measured gains, which move: such a plan becomes stale after a time.
_LASTING: Final = (LockCode.NOTHING_APPLIES, LockCode.CLUSTER_CHANGED)
logger = logging.getLogger(__name__)


def watch_all(now: datetime) -> None:
    """Evaluate the watch loops of every cluster; an error in one does not affect the others."""
    for cluster in Cluster.objects.all():
        try:
            watch_cluster(cluster, now)
        except Exception:
            # The next cycle retries.
            logger.exception("Watching %s failed", cluster.slug)


def watch_cluster(cluster: Cluster, now: datetime) -> None:
    """Evaluate the watch loops of a cluster; every loop logs one decision."""
    policy = policy_of(cluster)
    review_waiting(cluster, policy, now)
    if policy.watch != "off":
        for loop in all_loops():
            if loop.prepare is not None:
                loop.prepare(cluster)
    observed = ClusterObservation.of_moment(cluster, now=now)
    # Observation is slow, so it precedes the lock.
    readings = {loop: _read(loop, observed) for loop in ordered_loops(cluster)}
    troubled = [loop.measure for loop, row in readings.items() if row.trouble and loop.measure]
    age_s = sample_age_s(cluster, now)
    with transaction.atomic():
        # Concurrent cycles would request two plans.
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        situation = situation_of(cluster, now, age_s)
        for loop, reading in readings.items():
            situation = _evaluate_loop(loop, reading, observed, situation, troubled)
    for loop in all_loops():
        if loop.evaluate is not None:
            situation = situation_of(cluster, now, age_s, loop.name)
            loop.evaluate(cluster, policy, _measured(situation, observed), now)


def ordered_loops(cluster: Cluster) -> list[WatchLoop]:
    """Return the loops in the order of evaluation, the one with a rejected last plan last."""
    loops = [loop for loop in all_loops() if loop.evaluate is None]
    own = watch_proposals(cluster).first()
    if own is None or own.state not in FRUITLESS:
        return loops
    asker = loop_of(own)
    return sorted(loops, key=lambda loop: loop.name == asker)


def sample_age_s(cluster: Cluster, now: datetime) -> float | None:
    """Return the age of the newest sample in s, None without one and of an idle cluster."""
    seen_at = cluster.last_sample_at
    age_s = (now - seen_at).total_seconds() if seen_at else None
    return (
        None if (age_s or 0.0) > oldest_s(cluster.trigger_ms) and is_idle(cluster, now) else age_s
    )


def situation_of(
    cluster: Cluster, now: datetime, age_s: float | None, planner: str = ""
) -> Situation:
    """Return the state of a cluster that decisions depend on, besides the measures.

    `age_s`: of the newest sample; `planner`: that whose loop acts itself, "" for all other loops.
    """
    running = Proposal.objects.filter(cluster=cluster, state__in=APPROVED)
    blackout = in_blackout(cluster, now)
    proposals = proposals_beside(cluster, planner)
    own = proposals.first()
    waiting = proposals.filter(state__in=OPEN).first()
    lock = lock_of(waiting) if waiting is not None else None
    if lock is not None and lock.code in _LASTING:
        # Nobody can approve it: another plan replaces it.
        waiting = None
    # Measures follow the moves of an execution with a delay.
    ended = Execution.objects.filter(cluster=cluster).aggregate(at=Max("finished_at"))
    moments = [own.requested_at if own else None, ended["at"]]
    return Situation(
        runs=cluster.desired == Cluster.Desired.RUNNING,
        age_s=age_s,
        trigger_ms=cluster.trigger_ms,
        running=running.values_list("pk", flat=True).first(),
        waiting=waiting.pk if waiting else None,
        waiting_since=waiting.requested_at if waiting else None,
        quiet_since=max((moment for moment in moments if moment), default=None),
        executed_at=ended["at"],
        blackout=blackout.reason if blackout else "",
        blackout_until=blackout_until(blackout, now) if blackout else None,
    )


def _measured(situation: Situation, observed: ClusterObservation) -> Situation:
    """Return the situation with what keeps the measures from showing the load."""
    return replace(situation, catching_up=observed.catching_up(), is_new=observed.is_new)


def _read(loop: WatchLoop, observed: ClusterObservation) -> LoopReading:
    """Return a loop's reading, an empty one if the policy switches the loops off."""
    if observed.policy.watch == "off" or not len(observed.batches):
        return LoopReading(None, None, "Nothing was measured in the last minute")
    return loop.read(observed)


def _evaluate_loop(
    loop: WatchLoop,
    reading: LoopReading,
    observed: ClusterObservation,
    situation: Situation,
    troubled: Sequence[str],
) -> Situation:
    """Evaluate one loop; return the situation for the next loop.

    `troubled`: the measures of all loops in trouble.
    """
    last = last_decision(observed.cluster, loop.name)
    present = _measured(situation, observed) if loop.is_measured else situation
    if reading.trouble and _leaves_in_trouble(situation.waiting, loop, observed):
        # It was not executed, so the measures do not follow it.
        moments = (situation.executed_at, last_request(observed.cluster, loop.name))
        quiet = max((moment for moment in moments if moment), default=None)
        present = replace(present, waiting=None, quiet_since=quiet)
    outcome = decide(reading, present, observed.policy, last.code if last else "", observed.now)
    if outcome.code == "asked":
        planners = planners_for(observed, loop)
        if not planners:
            text = f"{reading.text}; no planner can move the running queries"
            outcome = replace(outcome, code="no_planner", text=text)
        else:
            proposal = request_plan(observed, loop, planners, troubled)
            outcome = replace(outcome, proposal=proposal.pk)
            situation = replace(
                situation, waiting=proposal.pk, waiting_since=observed.now, quiet_since=observed.now
            )
    record_decision(observed.cluster, loop.name, outcome, observed.now, last)
    return situation


def _leaves_in_trouble(waiting: int | None, loop: WatchLoop, observed: ClusterObservation) -> bool:
    """Return whether a ready plan of a less urgent loop leaves the measure of this one exceeded.

    So does one that nobody can approve. Then it does not prevent another plan, which replaces it.
    """
    if waiting is None:
        return False
    ready = Proposal.objects.filter(pk=waiting, state=Proposal.State.READY)
    plan = ready.first()
    asker = loop_named(loop_of(plan)) if plan is not None else None
    if plan is None or asker is None or asker.order <= loop.order:
        return False
    if lock_of(plan, observed.policy) is not None:
        return True
    measure = loop.measure or STRANDED.name
    limits = measure_limits(observed.policy, observed.reachable)
    after = plan.after.get(measure)
    return after is None or after > limits.get(measure, loop.limit(observed.policy))
