"""What all experiments promise: a complete table, progress, and typed refusals."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from algorithms.errors import BadParameters
from algorithms.lab.errors import UnknownExperiment
from algorithms.lab.experiment import Measures
from algorithms.lab.experiments import (
    Axis,
    Cell,
    Experiment,
    Panel,
    Repeated,
    Table,
    experiment,
    experiments,
    summarise,
)
from algorithms.lab.registry import PLANNERS
from algorithms.lab.tables import FIGURES
from algorithms.vocabulary import Progress, parameter


@dataclass(frozen=True)
class Doubling(Repeated):
    """Parameters of the experiment below."""

    size: int = parameter(3, unit="", help="What is doubled.", minimum=1, maximum=1_000)


def doubled(
    parameters: Doubling, seed: int, series: Sequence[str], progress: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield a number that tells which point, seed and series it belongs to."""
    for turn, name in enumerate(series):
        progress(turn / len(series))
        yield name, {"result": 2 * parameters.size + seed / 10 + len(name) * 100}


def doubling() -> Experiment:
    return Experiment(
        planner="none",
        name="doubling",
        title="Doubling",
        about="What an experiment does with its trials.",
        x=Axis("size", "Size"),
        panels=(Panel("Doubling", Axis("result", "Result")),),
        parameters=Doubling,
        values=(1.0, 2.0),
        series=("a", "bc"),
        choices=("a", "bc", "def"),
        measures=("result",),
        trial=doubled,
    )


def test_the_table_has_a_row_per_value_seed_and_series() -> None:
    """Long form, in the order in which it was computed."""
    table = doubling().run(Doubling(seeds=2))
    assert table.columns == ("size", "series", "seed", "result")
    assert table.rows[:4] == (
        (1, "a", 0, 102.0),
        (1, "bc", 0, 202.0),
        (1, "a", 1, 102.1),
        (1, "bc", 1, 202.1),
    )
    assert len(table.rows) == 8


def test_values_and_series_can_be_chosen() -> None:
    """What JSON sends as 5.0 is the whole number 5; a series named twice runs once."""
    table = doubling().run(Doubling(seeds=1), values=[5.0], series=["def", "a", "def"])
    assert table.rows == ((5, "def", 0, 310.0), (5, "a", 0, 110.0))


def test_progress_runs_from_0_to_1_and_never_back() -> None:
    """Shares of the trials are scaled into the whole run."""
    heard: list[float] = []
    doubling().run(Doubling(seeds=2), progress=heard.append)
    assert heard[0] == 0.0
    assert heard[-1] == 1.0
    assert heard == sorted(heard)
    assert 0.125 in heard


def test_what_progress_raises_stops_the_run() -> None:
    """That is how a run is cancelled."""
    heard: list[float] = []

    def cancel(share: float) -> None:
        heard.append(share)
        if share >= 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        doubling().run(Doubling(seeds=2), progress=cancel)
    assert max(heard) == 0.5


@pytest.mark.parametrize(
    ("values", "series", "field"),
    [
        ([0], None, "values"),
        ([1.5], None, "values"),
        ([float("nan")], None, "values"),
        (["one"], None, "values"),
        ([], None, "values"),
        (None, ["a", "x"], "series"),
        (None, [], "series"),
    ],
)
def test_bad_values_and_series_are_refused_before_anything_runs(
    values: Sequence[float] | None, series: Sequence[str] | None, field: str
) -> None:
    """The swept parameter's own limits hold for its values."""
    with pytest.raises(BadParameters) as caught:
        doubling().run(Doubling(), values, series)
    assert list(caught.value.fields) == [field]


def test_parameters_of_another_experiment_are_refused() -> None:
    """They would lack what the trial reads."""
    with pytest.raises(BadParameters, match="must be Doubling, not Repeated"):
        doubling().run(Repeated())


def test_the_summary_is_over_seeds() -> None:
    """Checked by hand; a run without the figure does not count."""
    rows: tuple[tuple[Cell, ...], ...] = (
        (1, "a", 0, 2.0),
        (1, "a", 1, 4.0),
        (1, "b", 0, 7.0),
        (1, "b", 1, None),
        (2, "a", 0, None),
    )
    table = summarise(Table(("x", "series", "seed", "y"), rows), "x", "y")
    assert table.columns == (
        "x",
        "series",
        "mean",
        "deviation",
        "smallest",
        "largest",
        "runs",
    )
    assert table.rows == (
        (1, "a", 3.0, 2**0.5, 2.0, 4.0, 2),
        (1, "b", 7.0, 0.0, 7.0, 7.0, 1),
        (2, "a", None, None, None, None, 0),
    )


def test_a_table_survives_json() -> None:
    """Also its missing values; an unknown column is named."""
    table = Table(("x", "series", "y"), ((1, "a", None), (2, "b", 0.5)))
    assert Table.from_json(json.loads(json.dumps(table.to_json()))) == table
    assert table.column("series") == ("a", "b")
    assert table.records()[1] == {"x": 2, "series": "b", "y": 0.5}
    with pytest.raises(KeyError, match="columns: x, series, y"):
        table.column("z")


@pytest.mark.parametrize(
    "one",
    [one for planner in PLANNERS for one in experiments(planner.name)],
    ids=lambda one: f"{one.planner} {one.name}",
)
def test_every_experiment_describes_itself(one: Experiment) -> None:
    """Forms, help texts and charts are made of this alone."""
    parameters = one.parameters()
    assert experiment(one.planner, one.name) is one
    assert "ection" in one.about
    assert one.x.name in {field.name for field in one.parameters.fields()}
    assert len(one.points(parameters, one.values)) == len(one.values) > 1
    assert one.checked_series(one.series) == one.series
    assert {panel.y.name for panel in one.panels} <= set(one.measures)


@pytest.mark.parametrize("name", [*FIGURES, "series", "seed", "result"])
def test_x_is_named_like_no_other_column(name: str) -> None:
    """A column would have the values of another one without an error."""
    with pytest.raises(ValueError, match=f"is named {name}"):
        replace(doubling(), x=Axis(name, "Size"))


def test_an_unknown_experiment_is_refused_by_name() -> None:
    """The message says which there are."""
    with pytest.raises(UnknownExperiment, match=r"no experiment 'fig9'; known: fig3a, fig3b"):
        experiment("placement", "fig9")
    with pytest.raises(UnknownExperiment, match="known: none"):
        experiment("nothing", "fig3a")
