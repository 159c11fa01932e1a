"""Plans as points, and what was measured against what was promised."""

import pytest

from dashboard.figures.comparison import PlanPoint, comparison_figures
from dashboard.figures.ledger import ledger_figures
from dashboard.plan_names import budget_name, parameters_name, series_names, titled_parameters


def plan(series: str, cost: int, *, pareto: bool = True) -> PlanPoint:
    return PlanPoint(series, f"{series} {cost}", f"/{series}/{cost}/", cost, 0.2, 1.5, pareto)


def test_plans_of_a_series_are_a_line_by_cost() -> None:
    """What is not in the Pareto set is hollow; every point names its page."""
    drawn = comparison_figures(
        [plan("a", 30), plan("a", 10, pareto=False), plan("b", 20)], "bytes", 0.3, 2.0
    )
    first, second, now = drawn["imbalance"]["data"]
    assert (first["name"], second["name"], now["name"]) == ("a", "b", "now")
    assert first["x"] == [10, 30]
    assert first["marker"]["symbol"] == ["circle-open", "circle"]
    assert [point[0] for point in first["customdata"]] == ["/a/10/", "/a/30/"]
    assert (now["x"], now["y"]) == ([0], [0.3])
    assert drawn["replication_factor"]["data"][-1]["y"] == [2.0]


def test_without_known_state_the_cost_is_in_moves() -> None:
    drawn = comparison_figures([plan("a", 3)], "moves", 0.3, None)
    assert drawn["imbalance"]["layout"]["xaxis"]["title"]["text"] == "moves"


def test_the_axis_of_equal_values_is_around_them_and_not_below_zero() -> None:
    """A single plan, or plans of one value: the axis has no negative shares."""
    one = comparison_figures([plan("a", 3)], "moves", 0.2, None)
    for name, value in (("imbalance", 0.2), ("replication_factor", 1.5)):
        low, high = one[name]["layout"]["yaxis"]["range"]
        assert 0 < low < value < high < 1.2 * value
    balanced = PlanPoint("a", "a 3", "/a/3/", 3, 0.0, 1.0, pareto=True)
    assert comparison_figures([balanced], "moves", 0.0, None)["imbalance"]["layout"]["yaxis"][
        "range"
    ] == [0, 0.1]
    several = comparison_figures([plan("a", 3)], "moves", 0.3, None)["imbalance"]
    assert several["layout"]["yaxis"]["range"] == pytest.approx([0.192, 0.308])


def test_only_what_was_predicted_and_measured_is_drawn() -> None:
    entries = [
        ("A", "/1/", {"bytes": 10.0, "imbalance": 0.1}, {"bytes": 20.0}),
        ("B", "/2/", {"bytes": 30.0}, {"bytes": 30.0}),
    ]
    drawn = ledger_figures(entries, {"imbalance": "", "bytes": "bytes"})
    assert list(drawn) == ["bytes"]
    diagonal, first, second = drawn["bytes"]["data"]
    assert diagonal["x"] == diagonal["y"]
    assert (first["x"], first["y"], first["customdata"]) == ([10.0], [20.0], [["/1/"]])
    assert second["name"] == "B"


def test_names_say_what_tells_plans_apart() -> None:
    plans = [
        ("placement", "mms", {"nu": 0.5}),
        ("placement", "mms", {"nu": 1.0}),
        ("placement", "off_rand", {"nu": 1.0, "seed": 3}),
        ("placement", "gone", {}),
    ]
    first, second, third, gone = series_names(plans)
    assert first.endswith(", uneven load allowed 0.5")
    assert second.endswith(", uneven load allowed 1")
    assert "slack" not in third
    assert gone == "gone"


def test_parameters_have_their_titles() -> None:
    """Parameters that no planner declares have the words of their names."""
    values = {"seed": 3, "nu": 0.5, "old_limit": None}
    known = parameters_name("placement", "off_rand", values)
    assert known == "uneven load allowed 0.5, old limit none, seed 3"
    assert parameters_name("placement", "gone", values) == "nu 0.5, old limit none, seed 3"
    assert titled_parameters("gone", "mms", {"is_fast": True}) == [("Is fast", True)]


def test_a_budget_is_told_with_its_units() -> None:
    assert budget_name({}) == ""
    told = budget_name({"bytes": 1_500_000, "moves": 10, "share": 0.25, "pause_ms": 800})
    assert told == "at most 1.5 MB, 10 moves, 25 % of its bytes, 800 ms of pauses"
