"""Figure 15 in small, on a real pipeline: nobody waits live, everybody waits for a restart."""

from typing import Any

import pytest

from algorithms.lab.experiments import experiment
from algorithms.lab.migration.experiments.live import TrialFailed, rows_of
from workers.lab.live_migration.course import Request, by_minute

pytestmark = pytest.mark.nightly("lab")

SMALL = Request(
    minutes=4, minute_s=6.0, present=3, nodes=2, tasks=12, keys=500, rate=400.0, tau=0.4, seed=0,
    series="live",
)  # fmt: skip


def row(emitted_ms: float, n: int, mean: float, moved: int = 0) -> dict[str, Any]:
    moves = [{"bytes": moved, "waited": 0}] if moved else []
    return {"emitted_ms": emitted_ms, "latency": {"n": n, "mean": mean, "p95": 2 * mean},
            "moves": moves}  # fmt: skip


def test_minutes_weigh_their_results() -> None:
    """A minute without a result has no response time; the last one takes what is still to come."""
    rows = [row(500, 9, 1.0), row(1_500, 1, 100.0), row(2_500, 3, 100.0, moved=7),
            row(14_500, 2, 50.0), row(40_000, 2, 150.0)]  # fmt: skip
    found = by_minute(Request(**{**vars_of(SMALL), "minutes": 3}), rows, started=1.0)
    assert [minute["response"] for minute in found] == [100.0, None, 100.0]
    assert [minute["results"] for minute in found] == [4, 0, 4]
    assert [minute["moved"] for minute in found] == [7, 0, 0]


def vars_of(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in Request.__dataclass_fields__}


def test_the_change_empties_the_nodes_that_leave() -> None:
    moves = SMALL.change(dict.fromkeys(range(12), 1000)).moves
    owners = SMALL.owners()
    for node, first, stop in moves:
        owners[first:stop] = [node] * (stop - first)
    assert set(owners) == {0, 1} or len(set(owners)) == 2


def test_a_program_that_breaks_is_told_from_one_that_measures() -> None:
    with pytest.raises(TrialFailed, match="gave no rows"):
        rows_of("algorithms.nothing_of_this_name", {}, lambda _: None)


PARAMETERS = {
    "seeds": 1, "minutes": 3, "minute_s": 5.0, "present": 3, "nodes": 2, "tasks": 12,
    "keys": 500, "rate": 400.0,
}  # fmt: skip


def rows_of_figure(series: tuple[str, ...], shares: list[float]) -> list[dict[str, Any]]:
    """Return the rows of figure 15 in small."""
    fig15 = experiment("migration", "fig15")
    parameters = fig15.parameters.from_mapping(PARAMETERS)
    return fig15.run(parameters, [1, 2, 3], series, shares.append).records()


# By day the random schedule moves state on a real pipeline, and the operator's day a plan.
@pytest.mark.spark
def test_live_migration_goes_on_answering() -> None:
    """Every minute has results, tasks have moved with their bytes, and progress was told."""
    shares: list[float] = []
    rows = rows_of_figure(("live",), shares)
    assert all(row["results"] > 0 and row["response"] is not None for row in rows)
    assert sum(row["moved"] for row in rows) > 0
    assert shares == sorted(shares)
    assert len(set(shares)) > 5


@pytest.mark.spark
def test_live_migration_answers_while_a_restart_does_not() -> None:
    """The shape of figure 15: live stays within a second or two, the restart takes many."""
    rows = rows_of_figure(("live", "restart"), [])
    slowest = {
        series: max(one["slowest"] or 0 for one in rows if one["series"] == series)
        for series in ("live", "restart")
    }
    assert slowest["restart"] > 2 * slowest["live"]
    assert {one["series"] for one in rows if one["moved"]} == {"live", "restart"}
