import json

import pytest

from algorithms.lab.__main__ import as_json, as_text
from algorithms.lab.registry import PLANNERS

pytestmark = pytest.mark.nightly("lab", by_day=True)


def test_everything_a_caller_needs_is_said_of_each_parameter() -> None:
    placement = as_json(PLANNERS)["planners"][0]
    online = next(one for one in placement["algorithms"] if one["name"] == "least_cost")
    assert (online["kind"], online["title"]) == ("online", "Least cost")
    nu, alpha = (p for p in online["parameters"] if p["name"] in ("nu", "alpha"))
    assert (nu["type"], nu["default"], nu["minimum"]) == ("float", 0.05, 0.0)
    assert (nu["title"], nu["letter"]) == ("Uneven load allowed", "nu")
    assert (alpha["default"], alpha["unit"]) == (10.0, "queries")
    assert alpha["help"].endswith(".")


def test_the_problems_own_parameters_are_listed_with_every_algorithm() -> None:
    """The slack is the problem's, yet it is given like any other parameter."""
    for one in as_json(PLANNERS)["planners"][0]["algorithms"]:
        assert [p["name"] for p in one["parameters"]].count("nu") == 1


def test_the_list_is_plain_json() -> None:
    shown = as_json(PLANNERS)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_choices_and_bounds_are_readable() -> None:
    text = as_text(PLANNERS)
    assert (
        "--param start=least_cost  Start (one of least_cost (LeastCost), ic (IC), mms (MMS),"
        " better (The better of IC and MMS)): What is refined" in text
    )
    assert "  Extra queries allowed (number [queries], at least 0, at most 10,000,000): " in text
    assert "at most 1,000,000): " in text
