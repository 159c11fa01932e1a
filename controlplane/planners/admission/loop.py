"""The admission loop: redirects streams in every cycle by the policy, and logs why."""

from datetime import datetime
from typing import Final

from controlplane.errors import Conflict, VersionMoved
from controlplane.models import Cluster
from controlplane.numbers import percent
from controlplane.planners.admission.cluster_forecast import keep_forecast
from controlplane.planners.admission.redirections import (
    PlannedRedirections,
    apply_redirections,
    plan_redirections,
)
from controlplane.policies.settings import PolicySettings
from controlplane.proposals import requests
from controlplane.watch.decision import LoopDecision, Situation, decide, unobservable
from controlplane.watch.decision_log import last_decision, record_decision
from controlplane.watch.loop import WatchLoop
from controlplane.watch.planner_request import WATCH
from controlplane.watch.reading import LoopReading

ADMISSION: Final = "admission"
# Load/capacity above which a split node is overloaded.
FULL: Final = 1.0
# A decision names so many streams; the audit log has all.
_NAMED: Final = 3


def redirect_streams(
    cluster: Cluster, policy: PolicySettings, situation: Situation, now: datetime
) -> None:
    """Redirect streams, or request a proposal, by the policy; log one decision.

    The forecast that pages read is computed again if it is due.
    """
    keep_forecast(cluster, policy, now)
    last = last_decision(cluster, ADMISSION)
    outcome = _outcome(cluster, policy, situation, last.code if last else "", now)
    record_decision(cluster, ADMISSION, outcome, now, last)


def _outcome(
    cluster: Cluster, policy: PolicySettings, situation: Situation, last: str, now: datetime
) -> LoopDecision:
    if policy.redirects == "off":
        return LoopDecision("off", None, None, "The policy switches redirections of streams off")
    unable = unobservable(situation)
    if unable is None and not cluster.streams.exists():
        unable = LoopDecision("no_data", None, FULL, "The cluster has no stream")
    if unable is not None:
        return unable
    try:
        planned = plan_redirections(cluster, policy)
    except Conflict as refusal:
        return LoopDecision(refusal.code, None, FULL, str(refusal))
    reading = _reading(planned)
    if policy.redirects == "act":
        return _act(cluster, planned, reading, situation)
    outcome = decide(reading, situation, policy, last, now)
    return _requested(cluster, policy, reading) if outcome.code == "asked" else outcome


def _requested(cluster: Cluster, policy: PolicySettings, reading: LoopReading) -> LoopDecision:
    """Request a proposal of the same strategy."""
    proposal = requests.request(
        WATCH, cluster, policy.redirect_strategy,
        {"latency_s": policy.redirect_latency_s, "consolidate": policy.close_split_nodes},
        planner=ADMISSION,
    )  # fmt: skip
    return LoopDecision("asked", reading.number, reading.limit, reading.text, proposal=proposal.pk)


def _reading(planned: PlannedRedirections) -> LoopReading:
    text = f"Split node {planned.fullest} is expected at {percent(planned.worst)} of its capacity"
    if planned.too_large:
        names = ", ".join(planned.too_large[:_NAMED])
        text = f"{text}; a split node cannot read all of {names}"
    return LoopReading(planned.worst, FULL, text, trouble=bool(planned.actions))


def _act(
    cluster: Cluster, planned: PlannedRedirections, reading: LoopReading, situation: Situation
) -> LoopDecision:
    """Apply redirections, unless an execution or a blackout forbids it."""
    number, limit, text = reading.number, reading.limit, reading.text
    if not planned.actions:
        if planned.refused:
            text = f"{text}; {planned.refused} streams need more split nodes than the policy allows"
            return LoopDecision("split_limit", number, limit, text)
        code = "too_large" if planned.too_large else "within"
        return LoopDecision(code, number, limit, text)
    if situation.running is not None:
        text = f"{text}; proposal {situation.running} is being executed"
        return LoopDecision("execution_running", number, limit, text, proposal=situation.running)
    if situation.blackout_until is not None:
        return LoopDecision("blackout", number, limit, f"{text}; blackout: {situation.blackout}")
    summary = f"{planned.text} redirected: {text}"
    try:
        apply_redirections(cluster, planned, summary)
    except VersionMoved:
        return LoopDecision(
            "busy", number, limit, "The routing table changed; the next cycle retries"
        )
    return LoopDecision("redirected", number, limit, summary)


LOOPS: Final = (
    WatchLoop(
        ADMISSION,
        "a split node beyond its capacity, now or in the next periods",
        80,
        lambda _: LoopReading(None, None, ""),
        evaluate=redirect_streams,
    ),
)
