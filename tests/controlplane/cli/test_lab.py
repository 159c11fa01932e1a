"""The Lab at the terminal."""

from tests.controlplane.cli.conftest import Weir

SHORT = ("--param", "queries=60", "--param", "servers=3", "--values", "1.5", "--series",
         "least_cost", "--seeds", "1")  # fmt: skip


def test_experiments_are_listed(weir: Weir) -> None:
    rows = weir("lab", "list", "placement", "--json").json
    assert (rows[4]["planner"], rows[4]["experiment"]) == ("placement", "fig4a")
    assert "fig9" in weir("lab", "list").out
    assert weir("lab", "list", "odd").code == 2


def test_an_experiment_is_run(weir: Weir) -> None:
    told = weir("lab", "run", "placement", "fig4a", *SHORT)
    assert told.code == 0
    assert "Least cost" in told.out
    found = weir("lab", "run", "placement", "fig4a", *SHORT, "--json").json
    assert found["rows"]
    wrong = weir("lab", "run", "placement", "fig4a", "--param", "odd=1")
    assert wrong.code == 2
    assert "odd" in wrong.err
