"""The tiles of a run of the Lab: points, time, claims, spread, where it is computed."""

from django.utils import timezone
from django.utils.html import format_html

from controlplane.lab.outcomes import ClaimOutcomes
from controlplane.models import LabRun
from controlplane.numbers import MISSING, counted
from dashboard.frame.tile import Tile
from dashboard.lab.run_page import estimate_text, took_of
from dashboard.templatetags.weir import age


def run_tiles(
    run: LabRun, outcomes: ClaimOutcomes | None, spread: tuple[str, str] | None
) -> list[Tile]:
    """Return the tiles of a run.

    `outcomes`: of its claims, None before its end. `spread`: the largest half range over the seeds
    and its series, None if not known.
    """
    took, estimated = took_of(run, timezone.now()), estimate_text(run.estimate)
    seeds = run.seeds or 1
    points = len(run.table.get("rows", []))
    wanted = len(run.values) * len(run.series) * seeds
    started = format_html("started {}", age(run.started_at)) if run.started_at else "not started"
    return [
        Tile("Points", f"{points:,}", f"of {wanted:,}",
             f"{counted(len(run.values), 'values')}, {len(run.series)} series,"
             f" {counted(seeds, 'seeds')}",
             f"{round(100 * run.progress)} % of the estimated work", run.progress, top=1.0),
        Tile("Elapsed", took or MISSING, "", estimated, started),
        _claims(outcomes),
        Tile("Spread of seeds", f"±{spread[0]}" if spread else MISSING, "", _spread(run, spread)),
        Tile("Computed by", "Spark" if run.master else "Worker", "",
             run.master or "of the Lab, one core", f"requested by {run.requested_by or MISSING}"),
    ]  # fmt: skip


def _claims(outcomes: ClaimOutcomes | None) -> Tile:
    if outcomes is None:
        return Tile("Claims", MISSING, "", "tested at the end", link="#claims")
    if not outcomes.tested:
        return Tile(
            "Claims", MISSING, "", "none can be tested with these parameters", link="#claims"
        )
    failing = len(outcomes.failing)
    note = f"{failing} do{'es' if failing == 1 else ''} not" if failing else "none fails"
    return Tile("Claims", str(outcomes.holding), f"of {outcomes.tested} hold", note, link="#claims")


def _spread(run: LabRun, spread: tuple[str, str] | None) -> str:
    if spread:
        return f"largest half range, {spread[1]}"
    return "one seed" if run.seeds == 1 else "after the first points"
