"""The execution of a proposal on its page: progress, tiles, transfers, steps."""

from collections.abc import Sequence
from typing import Any, Final

from django.db.models import Max
from django.utils import timezone

from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import AlertReading, cluster_readings
from controlplane.models import Execution, Proposal, Step
from controlplane.numbers import milliseconds, size, value_text, with_unit
from controlplane.pagination.listing import Filters
from controlplane.pagination.pages import whole
from controlplane.policies.grades import Grade
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals.executions.progress import (
    Progress,
    progress_of,
    step_seconds,
    steps_listing,
)
from dashboard.frame.headline import Headline
from dashboard.frame.tile import Tile
from dashboard.guards import PageRequest
from dashboard.proposals.gantt import gantt_of, tick_texts
from dashboard.proposals.page import counts_text
from dashboard.templatetags.plans import eta

STEPS_PER_PAGE: Final = 12


def execution_context(
    request: PageRequest, proposal: Proposal, execution: Execution | None
) -> dict[str, Any]:
    """Return what the page shows of an execution, nothing before its start."""
    if execution is None:
        return {}
    progress, policy = progress_of(execution), policy_of(proposal.cluster)
    filters = Filters(whole(request.GET, "steps", 1), STEPS_PER_PAGE)
    page = steps_listing(execution, filters).page
    is_open = execution.finished_at is None
    now = execution.finished_at or timezone.now()
    forward = execution.direction == Execution.Direction.FORWARD
    gantt = gantt_of(execution, proposal.plan, now) if forward else None
    return {
        "progress": progress,
        "is_open": is_open,
        "counts": counts_text(progress),
        "running_headline": _headline(progress) if is_open else None,
        "part": _part(page.rows, progress),
        "tiles": _tiles(progress, policy) if is_open else [],
        "gantt": gantt,
        "gantt_ticks": tick_texts(gantt) if gantt is not None else [],
        "steps": page,
        "step_rows": [{"step": step, "seconds": step_seconds(step)} for step in page.rows],
    }


def _headline(progress: Progress) -> Headline:
    proposal, execution = progress.proposal, progress.execution
    what = f"{progress.applied:,} of {progress.applicable:,} actions"
    what += " reverted" if progress.back else " applied"
    if progress.eta_s is not None:
        what += f", {eta(progress)} left"
    notes = []
    if execution.last_step:
        notes.append("It stops after the step in progress")
    if progress.waits:
        notes.append(f"Waits because {progress.waits}")
    if not notes and proposal.state == Proposal.State.EXECUTING:
        cap = f"{execution.cap} action{'' if execution.cap == 1 else 's'}"
        reason = f": {execution.cap_reason}" if execution.cap_reason else ""
        notes.append(f"The next step has at most {cap}{reason}")
    paused = proposal.state == Proposal.State.PAUSED
    icon = "pause" if paused else "undo" if progress.back else "play"
    grade = "warn" if paused or progress.waits else "info"
    notes.append("Pause takes effect after the step in progress and asks for no reason first")
    why = " ".join(f"{note}." for note in notes)
    return Headline(what, why, grade, icon=icon)


def _part(steps: Sequence[Step], progress: Progress) -> float:
    """Return the share of the actions in the step in progress."""
    running = next((step for step in steps if step.state == Step.State.PUBLISHED), None)
    if running is None or not progress.total:
        return 0.0
    return (running.stop - running.first) / progress.total


def _tiles(progress: Progress, policy: PolicySettings) -> list[Tile]:
    execution, proposal = progress.execution, progress.proposal
    pause = execution.steps.aggregate(most=Max("pause_ms"))["most"]
    planned = proposal.predicted.get("pause_ms")
    readings = cluster_readings(proposal.cluster)
    rollback = execution.rollback_cost
    value, unit = with_unit(progress.bytes, "bytes")
    back, back_unit = with_unit(rollback.get("seconds"), "s")
    return [
        Tile("Actions applied", f"{progress.applied:,}", f"of {progress.applicable:,}",
             f"{progress.skipped:,} skipped"),
        Tile("State moved", value, f"{unit} of {size(progress.total_bytes)}",
             f"cap {size(policy.bytes_per_s)}/s"),
        Tile("Longest pause", *with_unit(pause, "ms"), f"planned {milliseconds(planned)}",
             f"limit {milliseconds(policy.pause_ms)}",
             pause or 0, policy.pause_ms, grade="bad" if (pause or 0) > policy.pause_ms else ""),
        _reading_tile(readings[AlertMeasure.LATENCY]),
        _reading_tile(readings[AlertMeasure.IMBALANCE]),
        Tile("Rollback cost", back, back_unit,
             f"{size(rollback.get('bytes'))}, {rollback.get('actions', 0):,} actions"
             if rollback else "nothing applied yet", "from here"),
    ]  # fmt: skip


def _reading_tile(reading: AlertReading) -> Tile:
    value, unit = with_unit(reading.value, reading.kind.unit)
    limit = value_text(reading.limit, reading.kind.unit)
    grade = str(reading.grade) if reading.grade in (Grade.WARN, Grade.BAD) else ""
    return Tile(
        reading.kind.title, value, unit, "mean of the last minute", f"limit {limit}", reading.value,
        reading.limit, grade=grade,
    )  # fmt: skip
