"""Figure 15: the rows that a child sends, and what a parent lacks after changes."""

from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadParameters
from algorithms.lab.experiments import experiment
from algorithms.lab.shedding.experiments.changes import (
    ByMovement,
    Tolerated,
    changed_cuts,
    lacking_rows,
)
from algorithms.lab.shedding.experiments.networks import (
    CHILD,
    PARENT,
    chains,
    with_moved_load,
    with_selectivity,
    with_split,
)
from algorithms.lab.shedding.fit.table import Table


def series_of(name: str, series: str, measure: str, **more: Any) -> list[Any]:
    """Return a measure over the values of x."""
    item = experiment("shedding", name)
    table = item.run(item.parameters.from_mapping(more), None, (series,))
    return list(table.column(measure))


def table_of(rates: list[list[float]]) -> Table:
    rows = np.array(rates)
    return Table(rows, rows.sum(axis=1), np.ones(len(rows), np.bool_))


def test_a_larger_error_needs_fewer_rows() -> None:
    """Figure 15(a)."""
    for load in ("load_100", "load_12.5", "split"):
        rows = series_of("fig15a", load, "rows")
        assert rows == sorted(rows, reverse=True)
        assert rows[0] > 10 * rows[-1]


def test_complementary_plans_need_more_rows() -> None:
    """Drops at branches make higher rates feasible."""
    split, plain = (series_of("fig15a", name, "rows") for name in ("split", "load_100"))
    assert all(first > second for first, second in zip(split, plain, strict=True))


def test_cuts_do_not_depend_on_the_error() -> None:
    assert series_of("fig15a", "load_50", "cuts") == [4] * 6
    assert series_of("fig15a", "split", "cuts") == [None] * 6


@pytest.mark.parametrize("name", ["fig15b", "fig15c"])
@pytest.mark.parametrize("rule", ["needed", "all"])
def test_fewer_rows_are_sent_if_more_is_tolerated(name: str, rule: str) -> None:
    for series in experiment("shedding", name).choices:
        needed = series_of(name, series, "needed", rule=rule, epsilon=0.1)
        assert needed == sorted(needed, reverse=True)
        assert 0 <= needed[-1] <= needed[0] <= 100


def test_larger_movements_send_more_rows() -> None:
    """Figure 15(c), at a tolerance of 5 %."""
    needed = [
        series_of("fig15c", f"parent_to_child_{moved}", "needed")[3] for moved in (4, 8, 16, 24)
    ]
    assert needed == sorted(needed)


def test_nothing_is_sent_without_a_change() -> None:
    parameters = Tolerated(epsilon=0.1)
    child = parameters.child(parameters.network())
    assert lacking_rows(child.table, child, 0.0) == []


def test_a_parent_lacks_what_no_known_feasible_row_yields() -> None:
    """Known: one feasible row, and one that the child cannot process any more."""
    parameters = Tolerated(epsilon=0.1)
    child = parameters.child(parameters.network())
    best = child.table.rates[child.table.scores.argmax()]
    known = table_of([(0.5 * best).tolist(), [100.0, 100.0]])
    lacked = lacking_rows(known, child, 0.0)
    nothing = np.flatnonzero(child.table.scores > 0).tolist()
    assert lacking_rows(table_of([[100.0, 100.0]]), child, 0.5) == nothing
    assert int(child.table.scores.argmax()) in lacked
    assert int(child.table.scores.argmax()) not in lacking_rows(known, child, 0.5 + 1e-9)


def test_changed_cuts_by_hand() -> None:
    """One of two cuts has a slope that is 10 % larger."""
    known = np.array([[0.0, 1.0], [5.0, 0.5]])
    cuts = np.array([[0.0, 1.0], [5.0, 0.55]])
    assert changed_cuts(known, cuts, 0.0) == 50
    assert changed_cuts(known, cuts, 0.2) == 0
    assert changed_cuts(known, known, 0.0) == 0


def test_a_movement_changes_two_operators() -> None:
    before = chains(60.0, 36.0)
    after = with_moved_load(before, "p1", "c1", 24.0)
    assert [after.by_name[name].cost for name in ("p1", "c1")] == pytest.approx([0.036, 0.06])
    assert after.by_name["p2"] == before.by_name["p2"]
    with pytest.raises(BadParameters) as caught:
        with_moved_load(before, "p1", "c1", 61.0)
    assert list(caught.value.fields) == ["larger_ms"]
    with pytest.raises(BadParameters):
        ByMovement(larger_ms=20.0)


def test_a_selectivity_changes_one_operator() -> None:
    before = chains(60.0, 36.0)
    after = with_selectivity(before, "c1", 0.5)
    assert after.by_name["c1"].selectivity == 0.5
    assert [item for item in after.operators if item not in before.operators] == [
        after.by_name["c1"]
    ]


def test_a_split_keeps_the_load_and_doubles_the_results() -> None:
    before = chains(64.0, 32.0)
    after = with_split(before, CHILD)
    for node in (PARENT, CHILD):
        costs = [
            sum(item.cost for item in network.operators if item.node == node)
            for network in (before, after)
        ]
        assert costs[0] == pytest.approx(costs[1])
    assert set(after.outputs) == {"c1a", "c1b", "c2a", "c2b"}
    assert len(after.split_edges) == 4
