"""The Lab at the terminal."""

import pytest

from controlplane.access.roles import Actor
from tests.controlplane.cli.conftest import Weir

SHORT = ("--param", "queries=60", "--param", "servers=3", "--values", "1.5", "--series",
         "least_cost", "--seeds", "1")  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_experiments_are_listed(weir: Weir, viewer: Actor) -> None:
    by = {"user": viewer.name}
    rows = weir("lab", "list", "placement", "--json", **by).json
    assert (rows[4]["planner"], rows[4]["experiment"]) == ("placement", "fig4a")
    assert "fig9" in weir("lab", "list", **by).out
    assert weir("lab", "list", "odd", **by).code == 2


def test_an_experiment_is_run(weir: Weir) -> None:
    told = weir("lab", "run", "placement", "fig4a", *SHORT)
    assert told.code == 0
    assert "Least cost" in told.out
    found = weir("lab", "run", "placement", "fig4a", *SHORT, "--json").json
    assert found["rows"]
    wrong = weir("lab", "run", "placement", "fig4a", "--param", "odd=1")
    assert wrong.code == 2
    assert "odd" in wrong.err
