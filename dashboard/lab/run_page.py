"""What the page of a run shows: headline, tiles, claims, times, comparison."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from algorithms.lab.claims import Outcome
from algorithms.lab.experiments import Experiment, Table, series_title, summarise
from controlplane.lab.comparison import RunComparison
from controlplane.lab.outcomes import ClaimOutcomes
from controlplane.lab.runs import QueuePlace
from controlplane.lab.time_estimates import remaining_s
from controlplane.models import LabRun
from controlplane.numbers import duration, percent, seconds
from dashboard.frame.headline import Headline

GRADES: Final = {Outcome.HOLDS: "good", Outcome.FAILS: "bad", Outcome.UNTESTED: "info"}
STATE_GRADES: Final = {"done": "good", "failed": "bad", "running": "info", "cancelled": "warn"}
STATE_WORDS: Final = {"queued": "waiting"}


@dataclass(frozen=True)
class SeriesTime:
    """The seconds of a series, with its part of the largest."""

    title: str
    seconds: str
    share: float


def headline_of(run: LabRun, outcomes: ClaimOutcomes | None, rest: str) -> Headline:
    """Return the headline of a run; `rest`: its remaining time, or its place in the
    queue, in words; "" if unknown.
    """
    if run.state == LabRun.State.FAILED:
        return Headline("The run failed", f"{run.error}.", "bad")
    if run.state == LabRun.State.CANCELLED:
        return Headline("The run was cancelled", "Points that had been computed are kept.", "warn")
    if run.under_way:
        what = "The run waits" if run.state == LabRun.State.QUEUED else "The run is in progress"
        return Headline(what, rest, icon="clock")
    if outcomes is None:
        return Headline("This version of Weir does not have the experiment", "Its table is kept.",
                        "warn")  # fmt: skip
    return _of_claims(outcomes)


def _of_claims(outcomes: ClaimOutcomes) -> Headline:
    if not outcomes.decided:
        return Headline("The run is complete", "The paper has no claim about this sweep.", "good")
    if not outcomes.tested:
        return Headline("No claim can be tested with these parameters",
                        "See below what each claim needs.", "warn")  # fmt: skip
    untested = outcomes.count(Outcome.UNTESTED)
    what = f"{outcomes.holding} of {outcomes.tested} claims hold"
    if untested:
        what += f"; {untested} not testable"
    first = next(iter(outcomes.failing), None)
    if first is None:
        return Headline(what, "Checked for the means and for each seed.", "good")
    return Headline(what, f"Does not hold: {first.claim.text} {first.finding.evidence}.", "warn")


def rest_of(run: LabRun, now: datetime) -> str:
    """Return the estimated rest of a run in words, "" if nothing is known."""
    rest = remaining_s(run, now)
    if rest is None:
        return ""
    return f"About {seconds(rest)} left, by progress and finished runs."


def place_text(place: QueuePlace | None) -> str:
    """Return the position of a waiting run in words, "" without one."""
    if place is None or not place.position:
        return ""
    return (
        f"Position {place.position} in the queue, starts within {place.starts_in_s:,.0f} s as "
        "estimated."
    )


def took_of(run: LabRun, now: datetime) -> str:
    """Return how long a run took, or has taken so far; "" before its start."""
    if run.started_at is None:
        return ""
    return duration((run.finished_at or now) - run.started_at)


def estimate_text(estimate: dict[str, Any]) -> str:
    """Return the time that was estimated at the request, in words."""
    expected = estimate.get("expected_s")
    if expected is None:
        bound = estimate.get("high_s") or estimate.get("seconds")
        return f"estimated at most {_short(bound)}" if bound else ""
    return (
        f"estimated {_short(expected)} ({_short(estimate['low_s'])} to "
        f"{_short(estimate['high_s'])})"
    )


def _short(value: float) -> str:
    return duration(timedelta(seconds=value)) if value >= 10 else f"{value:.1f} s"  # noqa: PLR2004


def spread_of(experiment: Experiment, table: Table) -> tuple[str, str] | None:
    """Return the largest half range over the seeds relative to the mean, and its series.

    None for one seed.
    """
    measure = experiment.panels[0].y.name
    rows = summarise(table, experiment.x.name, measure).records()
    spreads = [
        ((float(row["largest"] or 0) - float(row["smallest"] or 0)) / 2 / abs(mean), row["series"])
        for row in rows
        if isinstance(mean := row["mean"], float) and mean and (row["runs"] or 0) > 1  # type: ignore[operator]
    ]
    if not spreads:
        return None
    share, series = max(spreads, key=lambda pair: pair[0])
    return percent(share), series_title(experiment.planner, experiment.name, str(series))


def times_of(run: LabRun) -> list[SeriesTime]:
    """Return the times of the series of a run, in the order of its request."""
    largest = max(run.timings.values(), default=0.0)
    return [
        SeriesTime(
            series_title(run.planner, run.experiment, name), seconds(run.timings[name]),
            run.timings[name] / largest if largest else 0.0,
        )
        for name in run.series
        if name in run.timings
    ]  # fmt: skip


def claim_rows(outcomes: ClaimOutcomes) -> list[dict[str, str]]:
    """Return the claims with the words and levels of their outcomes."""
    return [
        {
            "text": item.claim.text,
            "source": item.claim.source,
            "outcome": item.finding.outcome.value,
            "grade": GRADES[item.finding.outcome],
            "evidence": item.finding.evidence,
        }
        for item in outcomes.decided
    ]


def comparison_note(comparison: RunComparison, run: LabRun, other: LabRun) -> str:
    """Return where two runs differ most, in one sentence."""
    point = comparison.farthest
    if point is None or point.ratio is None:
        return "The runs have no point in common."
    title = series_title(run.planner, run.experiment, point.series)
    return (
        f"{run.title} ÷ {other.title}. Largest difference: {point.ratio:.3g} times at {point.x:g} "
        f"({title})."
    )
