"""The Lab at the terminal."""

import pytest

from controlplane import lab
from controlplane.access.roles import Actor
from tests.controlplane.cli.conftest import Weir
from tests.controlplane.lab.small_experiments import NAME, PLANNER, know, small_experiment

pytestmark = pytest.mark.nightly("commands")

SHORT = ("--param", "queries=60", "--param", "servers=3", "--values", "1.5", "--series",
         "least_cost", "--seeds", "1")  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_experiments_are_listed(weir: Weir, viewer: Actor) -> None:
    by = {"user": viewer.name}
    rows = weir("lab", "list", "placement", "--json", **by).json
    assert (rows[4]["planner"], rows[4]["name"]) == ("placement", "fig4a")
    assert "fig9" in weir("lab", "list", **by).out
    assert weir("lab", "list", "odd", "--json", **by).json == []


def test_an_experiment_is_run(weir: Weir) -> None:
    told = weir("lab", "run", "placement", "fig4a", *SHORT)
    assert told.code == 0
    assert "Least cost" in told.out
    found = weir("lab", "run", "placement", "fig4a", *SHORT, "--json").json
    assert found["rows"]
    wrong = weir("lab", "run", "placement", "fig4a", "--param", "odd=1")
    assert wrong.code == 2
    assert "odd" in wrong.err


@pytest.mark.django_db(transaction=True)
def test_runs_are_named_compared_and_exported(
    weir: Weir, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page of a run has, for scripts."""
    know(monkeypatch, small_experiment())
    by = {"user": operator.name}
    asked = ("lab", "start", "--planner", PLANNER, "--experiment", NAME, "--json", "seeds=1")
    first = weir(*asked, "--name", "First", **by).json["id"]
    second = weir(*asked, "height=4", **by).json["id"]
    for number in (first, second):
        lab.run(number)
    assert "First" in weir("lab", "runs", "--search", "first", **by).out
    compared = weir("lab", "compare", str(second), "--other", str(first), "--json", **by).json
    assert {point["ratio"] for point in compared["points"]} == {2.0}
    assert weir("lab", "claims", str(first), "--json", **by).json == []
    assert weir("lab", "change", str(first), "--visibility", "owner", **by).code == 0
    assert weir("lab", "export", str(first), **by).out.startswith("width,series,seed,area")
    assert weir("lab", "export", str(first), "--format", "svg", **by).out.startswith("<svg")
