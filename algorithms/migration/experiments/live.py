"""Figure 15 of section 6: response time around a change of the number of nodes, measured live."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from algorithms.errors import BadParameters
from algorithms.experiment import Axis, Experiment, Measures, Panel, Repeated, part
from algorithms.external import rows_of
from algorithms.vocabulary import Progress, parameter

# The program that runs a pipeline of its own and measures it.
PROGRAM: Final = "workers.live_migration"
SERIES: Final = ("live", "restart")
MEASURES: Final = ("response", "slowest", "results", "moved", "waited")


@dataclass(frozen=True)
class Changing(Repeated):
    """A cluster that loses nodes while records come."""

    seeds: int = parameter(
        1, help="How many workloads are drawn, each run live and restarted.", minimum=1, maximum=10
    )
    minute: int = parameter(
        1, help="Which minute; the nodes change at the beginning of the one in the middle.",
        minimum=1, maximum=60,
    )  # fmt: skip
    minutes: int = parameter(13, help="How long is measured.", minimum=3, maximum=60)
    minute_s: float = parameter(
        10.0, unit="s", help="What a minute lasts: the paper's 60 s, or quicker.", minimum=2.0
    )
    present: int = parameter(10, help="Nodes before.", minimum=1, maximum=32)
    nodes: int = parameter(8, help="Nodes after.", minimum=1, maximum=32)
    tasks: int = parameter(64, help="Tasks of the query.", minimum=1, maximum=1024)
    keys: int = parameter(20_000, help="Different keys: what the state grows to.", minimum=1)
    rate: float = parameter(5_000.0, unit="records/s", help="Records that come.", minimum=1.0)
    tau: float = parameter(0.4, help="How far a node may be above its share.", minimum=0.0)


def _trial(
    parameters: Changing, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    if parameters.minute > parameters.minutes:
        why = f"minute {parameters.minute} is after the last, {parameters.minutes}"
        raise BadParameters({"minutes": [why]})
    asked = parameters.to_mapping()
    del asked["minute"], asked["seeds"]
    for number, name in enumerate(series):
        rows = _course({**asked, "seed": seed, "series": name}, part(report, number, len(series)))
        yield name, {measure: rows[parameters.minute - 1][measure] for measure in MEASURES}


# All minutes of a course are measured at once, and the points of one run share it.
_KEPT_COURSES: Final = 64
_courses: dict[str, list[dict[str, Any]]] = {}


def _course(request: dict[str, Any], report: Progress) -> list[dict[str, Any]]:
    key = json.dumps(request, sort_keys=True)
    if key not in _courses:
        _courses[key] = rows_of(PROGRAM, request, report)
        while len(_courses) > _KEPT_COURSES:
            del _courses[next(iter(_courses))]
    return _courses[key]


FIG15: Final = Experiment(
    planner="migration",
    name="fig15",
    title="Effect of live migration",
    about=(
        "Section 6, figure 15: response time per minute, with fewer nodes from the middle on. "
        "live: tasks hand their state on while the others go on. restart: the application is "
        "stopped, its states are assigned anew and it is started again, as the paper's Storm. "
        "Runs a pipeline of its own on this machine, which takes a few minutes."
    ),
    x=Axis("minute", "Minute"),
    panels=(
        Panel("Response time", Axis("response", "Mean response time", "ms", log=True)),
        Panel("Slowest results", Axis("slowest", "95 % of results within", "ms", log=True)),
    ),
    parameters=Changing,
    values=tuple(float(minute) for minute in range(1, 14)),
    series=SERIES,
    choices=SERIES,
    measures=MEASURES,
    trial=_trial,
)
