"""A small experiment for tests, whose trials can be watched and held."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from algorithms.lab import experiments
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel, Repeated
from algorithms.vocabulary import Progress, parameter

PLANNER, NAME = "placement", "small"


@dataclass(frozen=True)
class Small(Repeated):
    """Two numbers and a word."""

    width: float = parameter(1.0, unit="m", help="Swept.", minimum=0.0, maximum=1e6)
    height: int = parameter(
        2, title="Height of the area", letter="h", unit="m", help="Fixed.", minimum=1, maximum=100
    )
    shape: str = parameter("square", help="One of three.", choices=("square", "round", "flat"))
    hollow: bool = parameter(default=False, help="Yes or no.")


def small_experiment(each: Callable[[Progress], object] = lambda report: None) -> Experiment:
    """Return an experiment whose area is width times height, and twice that for `double`.

    `each` is called in every trial with what reports progress.
    """

    def trial(
        point: Any, seed: int, series: Sequence[str], report: Progress
    ) -> Iterator[tuple[str, Measures]]:
        each(report)
        for name in series:
            area = point.width * point.height * (2 if name == "double" else 1) + seed
            yield name, {"area": area, "seconds": 0.5}

    return Experiment(
        planner=PLANNER,
        name=NAME,
        title="A small experiment",
        about="What the area is.",
        x=Axis("width", "Width", "m", log=True),
        panels=(Panel("Area over width", Axis("area", "Area", "m²")),),
        parameters=Small,
        values=(1.0, 10.0, 100.0),
        series=("single", "double"),
        choices=("single", "double", "least_cost"),
        measures=("area", "seconds"),
        trial=trial,
        axes=(Axis("seconds", "Time of a trial", "s"),),
    )


def know(monkeypatch: pytest.MonkeyPatch, one: Experiment) -> Experiment:
    """Let the experiment be known beside those there are."""
    known = experiments.EXPERIMENTS
    with_it = {**known, one.planner: (*known.get(one.planner, ()), one)}
    monkeypatch.setattr(experiments, "EXPERIMENTS", with_it)
    return one
