"""Figures 9 to 14 at a small size: every series, every measure, the paper's orders."""

from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadParameters
from algorithms.lab.experiments import experiment, summarise
from algorithms.lab.migration.experiments.chains import arrivals
from algorithms.lab.migration.experiments.figures import Migrating
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import SingleStep

SMALL = {"seeds": 1, "migrations": 12, "known": 60, "tasks": 32, "rounds": 1, "paths": 2}


def means(name: str, y: str, values: Any, series: Any = None, **more: Any) -> dict[Any, float]:
    one = experiment("migration", name)
    table = one.run(one.parameters.from_mapping(SMALL | more), values, series)
    rows = summarise(table, one.x.name, y).rows
    return {(row[0], row[1]): float(row[2] or 0) for row in rows}


def test_figure_9_has_the_papers_order() -> None:
    found = means("fig9", "moved", [1.2])
    moved = {name: value for (_, name), value in found.items()}
    assert moved["single_step"] < moved["consistent_hashing"] < moved["storm"]
    assert moved["mtm"] < moved["consistent_hashing"]


def test_figure_10_compares_equal_plans() -> None:
    moved = means("fig10", "moved", [0.8])
    assert moved[0.8, "ssm"] == pytest.approx(moved[0.8, "single_step"], rel=0.5)
    assert min(means("fig10", "seconds", [0.8]).values()) > 0


def test_figure_11_measures_what_is_done_beforehand() -> None:
    assert means("fig11", "prepared", [1.2])[1.2, "mtm"] > 0


def test_figure_12_plans_any_number_of_tasks() -> None:
    found = means("fig12", "moved", [32.0, 256.0], ["single_step", "ssm"])
    assert len(found) == 4
    assert min(found.values()) > 0


def test_figure_13_has_larger_windows_wait_longer() -> None:
    found = means("fig13", "response", [30.0, 120.0], ["single_step", "consistent_hashing"])
    for name in ("single_step", "consistent_hashing"):
        assert found[120.0, name] > found[30.0, name] > 0


def test_figure_14_without_a_future_is_the_single_step() -> None:
    found = means("fig14", "moved", [0.0])
    assert found[0.0, "mtm"] == pytest.approx(found[0.0, "single_step"], rel=0.2)


def test_free_assignments_need_larger_tables() -> None:
    entries = means("fig9", "entries", [0.4], ["free", "single_step"])
    assert entries[0.4, "free"] > entries[0.4, "single_step"]


def test_a_record_that_is_too_short_is_refused() -> None:
    with pytest.raises(BadParameters, match="cab_reports has 88 changes"):
        Migrating(demand="cab_reports").history(0)


def test_the_future_is_not_known_beforehand() -> None:
    """Chances come from what was before the first migration only."""
    short, long = (Migrating(known=50, migrations=count).history(0) for count in (5, 500))
    both = np.searchsorted(long.transitions.counts, short.transitions.counts)
    same = long.transitions.chances[np.ix_(both, both)]
    assert same.tolist() == short.transitions.chances.tolist()


def test_states_arrive_one_after_the_other_on_a_link() -> None:
    """Three tasks of 10 bytes leave one node for another: at 10, 20 and 30 bytes' time."""
    problem = MigrationProblem.of([1] * 6, [10] * 6, [0], 2, 0.0)
    plan = SingleStep().solve(problem)
    found = sorted(arrivals(problem.state, problem.owner, plan).tolist())
    assert found == [0, 0, 0, 10, 20, 30]
