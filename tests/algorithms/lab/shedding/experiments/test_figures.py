"""The experiments of load shedding at small sizes: shapes, guarantees, and the papers' orders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadParameters, BadProblem
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiments import experiment
from algorithms.lab.shedding.experiments.load_distribution import Distributed, name_of, provision_of
from algorithms.lab.shedding.experiments.networks import chains
from algorithms.lab.shedding.experiments.provision import TRACES
from algorithms.lab.shedding.plan_table.rate_distributions import ExponentialRates
from algorithms.lab.shedding.real_workloads import recorded_traces

# Sizes at which every series of an experiment runs within a second.
SMALL: dict[str, dict[str, Any]] = {
    "fig10": {"points": 20, "epsilon": 0.2},
    "fig11a": {"points": 20, "epsilon": 0.1},
    "fig11c": {"points": 20, "epsilon": 0.1},
    "fig13": {"points": 20, "epsilon": 0.1},
    "fig14a": {"points": 20, "lp_values": 300},
    "fig14b": {"points": 20, "lp_values": 100},
    "table3": {"points": 20, "lp_values": 300},
    "fig15a": {},
    "fig15b": {"epsilon": 0.2},
    "fig15c": {"epsilon": 0.2},
}
# A value at which a series with several inputs needs few rows.
VALUES = {"fig14a": 300, "fig14b": 0.5, "table3": 2, "fig15a": 0.2}


def rows_of(name: str, values: Any = None, series: Any = None, **more: Any) -> dict[Any, Any]:
    """Return the measures by x and series."""
    item = experiment("shedding", name)
    table = item.run(item.parameters.from_mapping(SMALL[name] | more), values, series)
    return {(row[item.x.name], row["series"]): row for row in table.records()}


def without_time(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "seconds"}


@pytest.mark.parametrize("name", SMALL)
def test_every_series_runs_and_a_seed_has_one_result(name: str) -> None:
    """Times are the only values that may differ."""
    item = experiment("shedding", name)
    values = [VALUES.get(name, item.values[0])]
    first, second = (rows_of(name, values, item.choices) for _ in range(2))
    assert len(first) == len(item.choices)
    for key, row in first.items():
        assert set(row) == {item.x.name, "series", "seed", *item.measures}
        assert without_time(row) == without_time(second[key])


def test_figure_10_keeps_the_guarantees() -> None:
    """All but Solver-W, whose guarantee is about expected rates."""
    found = rows_of("fig10", series=("solver", "c_fit", "c_fit_all", "d_fit", "exact"))
    for (_, name), row in found.items():
        assert row["error"] <= (1e-6 if name == "exact" else 20.0)
        assert (row["lp_values"] > 0) == (name == "solver")
        assert (row["sent_rows"] is not None) == (name == "d_fit")


def test_figure_10_has_solver_react_to_the_distribution_and_c_fit_not() -> None:
    """Section 8.2.1; Solver-W needs fewer programs for the same expected error."""
    found = rows_of("fig10", epsilon=0.1)
    solver, weighted, fit, exact = (
        [found[larger, name] for larger in (56.0, 64.0, 72.0, 80.0, 88.0)]
        for name in ("solver", "solver_w", "c_fit", "exact")
    )
    assert solver[-1]["lp_values"] > 4 * solver[0]["lp_values"]
    assert max(row["entries"] for row in fit) < 1.2 * min(row["entries"] for row in fit)
    for first, second in zip(solver, weighted, strict=True):
        assert second["lp_values"] < first["lp_values"]
        assert first["expected"] == second["expected"] < 10
    assert {row["entries"] for row in exact} == {4}


def test_figure_10_compares_rules_for_rows() -> None:
    """The rules of the paper keep fewer rows than the one that keeps all."""
    found = rows_of("fig10", [64.0], ("c_fit", "c_fit_all", "c_fit_pareto", "c_fit_triangle"))
    rows = {name: row["entries"] for (_, name), row in found.items()}
    assert max(rows["c_fit"], rows["c_fit_pareto"], rows["c_fit_triangle"]) < rows["c_fit_all"]


def test_figure_9_has_equal_sums_on_both_nodes() -> None:
    for larger in (56.0, 88.0):
        network = Distributed(larger_ms=larger).network()
        for node in network.nodes:
            costs = [item.cost for item in network.operators if item.node == node]
            assert sum(costs) == pytest.approx(0.096)
    with pytest.raises(BadParameters) as caught:
        Distributed(larger_ms=100.0, total_ms=96.0).network()
    assert list(caught.value.fields) == ["total_ms"]


def test_parallel_chains_have_a_bottleneck_on_both_nodes() -> None:
    """So the exact planner has the cuts of one node alone."""
    crossed, parallel = (
        rows_of("fig10", [64.0], ("exact",), layout=layout)[64.0, "exact"]
        for layout in ("crossed", "parallel")
    )
    assert (crossed["entries"], parallel["entries"]) == (4, 3)
    assert max(crossed["error"], parallel["error"]) < 1e-6


def test_figure_11a_needs_more_programs_at_higher_rates() -> None:
    """Section 8.2.2: a less provisioned system, and a less even distribution of its load."""
    found = rows_of("fig11a", [2.0, 10.0], (name_of("solver_w", 56.0), name_of("solver_w", 88.0)))
    low, high = name_of("solver_w", 56.0), name_of("solver_w", 88.0)
    for name in (low, high):
        assert found[10.0, name]["lp_values"] > found[2.0, name]["lp_values"]
        assert found[10.0, name]["provision"] < found[2.0, name]["provision"]
    assert found[10.0, high]["lp_values"] > found[10.0, low]["lp_values"]


def test_the_provision_level_is_a_probability() -> None:
    """One chain of 100 ms beside a free one: exponential rates of mean 10 are below 10."""
    network = chains(100.0, 0.0, layout="parallel")
    level = provision_of(network, ExponentialRates(np.full(2, 10.0)), 0)
    assert level == pytest.approx(100 * (1 - np.exp(-1)), abs=2)


def test_figure_11c_starts_where_a_fifth_of_the_rates_is_feasible() -> None:
    found = rows_of("fig11c", [64.0, 32.0], ("solver_w", "exact"))
    assert found[64.0, "solver_w"]["provision"] == pytest.approx(20, abs=1)
    assert found[32.0, "solver_w"]["provision"] > 80
    assert found[32.0, "solver_w"]["lp_values"] < found[64.0, "solver_w"]["lp_values"]
    assert found[64.0, "exact"]["error"] < 1e-6


@pytest.mark.parametrize("trace", TRACES)
def test_every_trace_can_be_chosen(trace: str) -> None:
    """Traces of few events have many equal rates."""
    found = rows_of("fig11c", [64.0], ("solver_w",), trace=trace, epsilon=0.3)
    assert found[64.0, "solver_w"]["provision"] == pytest.approx(20, abs=6)


def test_the_traces_are_those_of_the_file() -> None:
    assert sorted(TRACES) == list(recorded_traces())


def test_figure_11c_needs_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with pytest.raises(BadProblem, match=str(tmp_path)):
        rows_of("fig11c", [64.0], ("exact",))


def test_figure_13_keeps_the_guarantee_at_any_fan_out() -> None:
    found = rows_of("fig13", [2, 32])
    for (_, name), row in found.items():
        assert row["error"] <= (1e-6 if name == "exact" else 10.0)
    assert found[32, "exact"]["entries"] > found[2, "exact"]["entries"]
    with pytest.raises(BadParameters) as caught:
        rows_of("fig13", [2], least_ms=5.0, most_ms=2.0)
    assert list(caught.value.fields) == ["least_ms"]


def test_figure_14a_converges_and_more_inputs_need_more_programs() -> None:
    found = rows_of("fig14a", [1, 100, 300], ("solver_w_2", "solver_w_4", "exact_8"))
    two, four = (
        [found[solved, name]["expected"] for solved in (1, 100, 300)]
        for name in ("solver_w_2", "solver_w_4")
    )
    assert two[0] == four[0] == 100
    assert two[1] > two[2]
    assert two[2] < four[2]
    assert found[1, "exact_8"]["expected"] < 1e-6
    assert all(row["lp_values"] <= solved for (solved, _), row in found.items())


def test_figure_14b_has_more_rows_at_smaller_errors_and_more_inputs() -> None:
    found = rows_of("fig14b", [0.3, 0.5], ("c_fit_2", "c_fit_4", "exact_8"))
    for epsilon in (0.3, 0.5):
        assert found[epsilon, "c_fit_4"]["entries"] > 10 * found[epsilon, "c_fit_2"]["entries"]
        assert found[epsilon, "c_fit_4"]["error"] <= 100 * epsilon
        assert found[epsilon, "exact_8"]["error"] < 1e-6
    assert found[0.3, "c_fit_2"]["entries"] > found[0.5, "c_fit_2"]["entries"]


def test_table_3_has_no_values_where_a_table_would_be_too_large() -> None:
    """64 inputs are not a problem for the exact planner."""
    found = rows_of("table3", [2, 64], ("d_fit", "solver", "exact"))
    for name in ("d_fit", "solver"):
        assert found[64, name]["entries"] is None
        assert found[2, name]["error"] <= 10
    assert found[2, "d_fit"]["sent_rows"] == found[2, "d_fit"]["entries"]
    assert found[64, "exact"]["error"] < 1e-6
    with pytest.raises(BadParameters, match="must be even, not 3"):
        rows_of("table3", [3])
