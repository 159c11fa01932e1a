"""Rows that arrive during a run, comparisons, claims, and files."""

import json
import time
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.db.models import QuerySet

from algorithms.lab.claims import Claim
from algorithms.lab.claims.checks import Below, Course
from algorithms.lab.experiment import ResultRow, with_claims
from algorithms.lab.experiments import Experiment, Table
from algorithms.vocabulary import Progress
from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid
from controlplane.lab.arrival import ArrivedRows
from controlplane.lab.comparison import ParameterDifference, compare
from controlplane.lab.drawing import thumbnail_svg
from controlplane.lab.files import csv_of, json_of, svg_of
from controlplane.lab.outcomes import outcomes_of
from controlplane.models import LabRun
from tests.controlplane.lab.small_experiments import NAME, PLANNER, know, small_experiment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The small experiment is known."""
    return know(monkeypatch, small_experiment())


def finished(operator: Actor, **parameters: Any) -> LabRun:
    run = lab.request(operator, PLANNER, NAME, {"seeds": 2} | parameters)
    lab.run(run.pk)
    run.refresh_from_db()
    assert run.state == "done"
    return run


def test_rows_are_stored_while_the_run_continues_and_stay_after_it_is_cancelled(
    operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first points are visible within two seconds."""
    trials: list[int] = []

    def hold_the_second(report: Progress) -> None:
        trials.append(1)
        if len(trials) > 1:
            time.sleep(60)

    know(monkeypatch, small_experiment(hold_the_second))
    run = lab.request(operator, PLANNER, NAME, {"seeds": 1})

    def cancel_when_visible() -> bool:
        run.refresh_from_db()
        if run.table and run.state == "running":
            lab.cancel(operator, run)
        return False

    lab.run(run.pk, cancel_when_visible)
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert [row[:3] for row in run.table["rows"]] == [[1.0, "single", 0], [1.0, "double", 0]]
    assert set(run.timings) == {"single", "double"}


def test_a_large_table_is_written_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write of 0.1 s is followed by a pause of 2 s."""
    clock = [100.0]
    writes: list[int] = []

    class Rows(QuerySet[LabRun]):
        def update(self, **columns: Any) -> int:
            writes.append(len(columns["table"]["rows"]))
            clock[0] += 0.1
            return 1

    monkeypatch.setattr("controlplane.lab.arrival.time.monotonic", lambda: clock[0])
    arrived = ArrivedRows(lambda: Rows(LabRun), ("x", "series", "seed"))
    for _ in range(30):
        arrived.add(ResultRow("a", (1.0, "a", 0), 0.5))
        arrived.write_due()
        clock[0] += 0.1
    assert writes == [1, 21]
    assert arrived.timings == {"a": 15.0}


def test_two_runs_are_compared_by_their_means(operator: Actor, small: Experiment) -> None:
    """Height 4 over height 2 at the widths that both have; the seed adds 0.5 on average."""
    this, other = finished(operator, height=4), finished(operator)
    result = compare(small, this, other)
    assert result.measure == "area"
    assert result.differences == (ParameterDifference("height", 4, 2),)
    assert [(point.x, point.series) for point in result.points[:2]] == [
        (1.0, "single"), (1.0, "double"),
    ]  # fmt: skip
    assert result.points[0].ratio == pytest.approx(4.5 / 2.5)
    assert result.farthest is not None
    assert result.farthest.ratio == pytest.approx(400.5 / 200.5, rel=0.01)
    with pytest.raises(Invalid):
        compare(small, this, other, "nothing")


def test_runs_without_rows_or_of_other_experiments_are_not_compared(
    operator: Actor, small: Experiment
) -> None:
    this, waiting = finished(operator), lab.request(operator, PLANNER, NAME, {"height": 9})
    with pytest.raises(Conflict) as refused:
        compare(small, this, waiting)
    assert refused.value.code == "no_table"
    with pytest.raises(Conflict) as refused:
        compare(small, this, LabRun(planner=PLANNER, experiment="fig3a", table=this.table))
    assert refused.value.code == "other_experiment"


def test_the_headline_counts_the_claims_that_hold(small: Experiment, operator: Actor) -> None:
    claims = (
        Claim("figure 1", "The area grows.", Course("area", ("single", "double"))),
        Claim("figure 1", "Double is smaller.", Below("area", "double", ("single",))),
        Claim("figure 1", "Least cost is smallest.", Below("area", "least_cost", ("single",))),
    )
    (item,) = with_claims((small,), {NAME: claims}, {"height": 2})
    outcomes = outcomes_of(item, Table.from_json(finished(operator).table), {})
    assert (outcomes.holding, outcomes.tested, len(outcomes.decided)) == (1, 2, 3)
    assert [decided.claim.text for decided in outcomes.failing] == ["Double is smaller."]
    small_run = outcomes_of(item, Table.from_json(finished(operator).table), {"height": 1})
    assert (small_run.holding, small_run.tested) == (0, 0)
    assert small_run.decided[0].finding.evidence == "Height of the area: 1, at least 2 is needed"


def test_a_run_is_exported(operator: Actor, small: Experiment) -> None:
    """CSV and JSON have every row; the SVG is valid XML with a line per series."""
    run = finished(operator)
    table = Table.from_json(run.table)
    assert len(csv_of(table).splitlines()) == 1 + len(table.rows)
    assert json.loads(json_of(PLANNER, NAME, run.parameters, table))["rows"] == run.table["rows"]
    root = ET.fromstring(svg_of(small, run.parameters, table))
    texts = [item.text for item in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"single", "double", "Width (m)", "Area (m²)"} <= set(texts)
    circles = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    assert len(circles) == 2 * len(small.values)
    thumb = thumbnail_svg(small, table)
    assert thumb.count("<path") == 2
    assert thumbnail_svg(small, Table(table.columns, ())) == ""
