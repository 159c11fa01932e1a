"""Figure 15 of section 6: response time around a change of the number of nodes, measured live."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from algorithms.errors import BadParameters, PlanningError
from algorithms.estimates import MB, Estimate
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel, Repeated, part
from algorithms.vocabulary import MAX_SLACK, Progress, parameter

# The program that runs a pipeline of its own and measures it. It is named, not imported: what it
# needs (a cluster, a log) does not belong to the planners. It gets its request as JSON on standard
# input and writes JSON lines: {"progress": 0.5}, {"rows": […]} at its end, or {"error": "…"}.
PROGRAM: Final = "workers.lab.live_migration"
# How long the program may take to stop its processes (s).
_ENDING_S: Final = 60.0
SERIES: Final = ("live", "restart")
_TITLES: Final = {"live": "Live migration", "restart": "Restart of the application"}
MEASURES: Final = ("response", "slowest", "results", "moved", "waited")
_AXES: Final = (
    Axis("results", "Results"),
    Axis("moved", "Moved state", "bytes"),
    Axis("waited", "Records that waited for moved state"),
)


@dataclass(frozen=True)
class Changing(Repeated):
    """A cluster that loses nodes while records arrive."""

    seeds: int = parameter(
        1, help="How many workloads are drawn, each run live and restarted.", minimum=1, maximum=10
    )
    minute: int = parameter(
        1, help="Which minute; the nodes change at the beginning of the one in the middle.",
        minimum=1, maximum=60,
    )  # fmt: skip
    minutes: int = parameter(
        13, title="Measured minutes", help="How long is measured.", minimum=3, maximum=60
    )
    minute_s: float = parameter(
        10.0,
        title="Length of a minute",
        unit="s",
        help="What a minute lasts: the paper's 60 s, or quicker.",
        minimum=2.0,
        maximum=600.0,
    )
    present: int = parameter(
        10, title="Nodes before the change", help="Nodes before.", minimum=1, maximum=32
    )
    nodes: int = parameter(
        8, title="Nodes after the change", help="Nodes after.", minimum=1, maximum=32
    )
    tasks: int = parameter(64, letter="m", help="Tasks of the query.", minimum=1, maximum=1024)
    keys: int = parameter(
        20_000,
        title="Different keys",
        help="Different keys: what the state grows to.",
        minimum=1,
        maximum=10_000_000,
    )
    rate: float = parameter(
        5_000.0,
        title="Arriving records",
        unit="records/s",
        help="Records that arrive.",
        minimum=1.0,
        maximum=1e6,
    )
    tau: float = parameter(
        0.4,
        title="Slack of the work",
        letter="tau",
        help="How far a node may be above its share.",
        minimum=0.0,
        maximum=MAX_SLACK,
    )

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one minute of a course, which a pipeline of its own measures."""
        del series
        return Estimate(64 * MB, self.minute_s + 90.0 / self.minutes)


def _trial(
    parameters: Changing, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    if parameters.minute > parameters.minutes:
        why = f"minute {parameters.minute} is after the last, {parameters.minutes}"
        raise BadParameters({"minutes": [why]})
    request = parameters.to_mapping()
    del request["minute"], request["seeds"]
    for number, name in enumerate(series):
        rows = _course({**request, "seed": seed, "series": name}, part(report, number, len(series)))
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


class TrialFailed(PlanningError):
    """The program that measures a trial failed."""


def rows_of(module: str, request: Mapping[str, Any], report: Progress) -> list[dict[str, Any]]:
    """Return the rows that `python -m module` measures for a request.

    What `report` raises ends the program, too. Raises `TrialFailed`.
    """
    with subprocess.Popen(  # noqa: S603 - a module of this installation
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            return _read_rows(program, request, report)
        finally:
            program.terminate()
            try:
                program.wait(timeout=_ENDING_S)
            except subprocess.TimeoutExpired:
                program.kill()


def _read_rows(
    program: "subprocess.Popen[str]", request: Mapping[str, Any], report: Progress
) -> list[dict[str, Any]]:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(json.dumps(dict(request)))
    program.stdin.close()
    for line in program.stdout:
        message = json.loads(line)
        if "error" in message:
            raise TrialFailed(message["error"])
        if "rows" in message:
            rows: list[dict[str, Any]] = message["rows"]
            return rows
        report(float(message["progress"]))
    raise TrialFailed(f"the measuring program ended with {program.wait()} and gave no rows")


FIG15: Final = Experiment(
    planner="migration",
    name="fig15",
    title="Effect of live migration",
    about=(
        "Section 6, figure 15: response time per minute, with fewer nodes from the middle on. "
        "live: tasks transfer their state while the others continue. restart: the application is "
        "stopped, its states are assigned again and it is started, as the paper's Storm. "
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
    series_titles=_TITLES,
    measures=MEASURES,
    axes=_AXES,
    trial=_trial,
)
