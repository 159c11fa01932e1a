"""A run is carried out once, stops when it is not wanted, and is never lost or stuck."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from algorithms.errors import Infeasible
from algorithms.lab.experiments import Table, experiment
from algorithms.vocabulary import Progress
from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Forbidden, Invalid
from controlplane.lab import execution, requests
from controlplane.models import AuditEntry, LabRun
from controlplane.processes.isolation.heartbeat import Heartbeat
from tests.controlplane.lab.small_experiments import NAME, PLANNER, know, small_experiment

pytestmark = pytest.mark.django_db(transaction=True)
TINY = {"queries": 500, "servers": 5, "seeds": 2}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small experiment is known."""
    know(monkeypatch, small_experiment())


def asked(by: Actor) -> LabRun:
    return lab.request(by, PLANNER, NAME, {"seeds": 1})


def carried_out(run: LabRun) -> LabRun:
    lab.run(run.pk)
    run.refresh_from_db()
    return run


def test_a_run_keeps_the_table_that_the_experiment_gives(operator: Actor) -> None:
    """The same numbers as without the Lab; only the time it took differs."""
    run = lab.request(operator, "placement", "fig4a", TINY, [3.0, 1.5], ["on_rand"])
    assert (run.state, run.values, run.seeds) == ("queued", [1.5, 3.0], 2)
    assert carried_out(run).state == "done"
    assert (run.progress, run.error) == (1.0, "")
    assert run.started_at is not None
    assert run.finished_at is not None
    assert run.started_at <= run.finished_at
    fig4a = experiment("placement", "fig4a")
    here = fig4a.run(fig4a.parameters.from_mapping(TINY), [1.5, 3.0], ["on_rand"])
    stored = Table.from_json(run.table)
    for column in ("exponent", "series", "seed", "replication_factor", "max_load"):
        assert stored.column(column) == here.column(column)


def test_what_is_left_out_is_as_the_experiment_has_it(operator: Actor, small: None) -> None:
    """The swept parameter is not among the fixed ones."""
    run = lab.request(operator, PLANNER, NAME)
    assert run.values == [1.0, 10.0, 100.0]
    assert run.series == ["single", "double"]
    assert run.parameters == {"seeds": 3, "height": 2, "shape": "square", "hollow": False}


@pytest.mark.parametrize(
    ("name", "parameters", "values", "series", "field"),
    [
        ("nothing", {}, None, None, "experiment"),
        (NAME, {"depth": 1}, None, None, "depth"),
        (NAME, {"height": 1.5}, None, None, "height"),
        (NAME, {}, [], None, "values"),
        (NAME, {}, [float("nan")], None, "values"),
        (NAME, {}, None, [], "series"),
        (NAME, {"seeds": 10_000}, None, None, "seeds"),
        (NAME, {"seeds": 1_000}, [float(width) for width in range(1, 21)], None, "values"),
    ],
)
def test_what_cannot_be_run_is_refused(
    operator: Actor,
    small: None,
    name: str,
    parameters: dict[str, float],
    values: list[float] | None,
    series: list[str] | None,
    field: str,
) -> None:
    with pytest.raises(Invalid) as refused:
        lab.request(operator, PLANNER, name, parameters, values, series)
    assert list(refused.value.fields) == [field]


def test_a_viewer_may_not_decide(operator: Actor, viewer: Actor, small: None) -> None:
    """Looking is not spending the machine."""
    run = asked(operator)
    for decide in (lab.cancel, lab.delete, lab.repeat):
        with pytest.raises(Forbidden):
            decide(viewer, run)
    with pytest.raises(Forbidden):
        asked(viewer)
    assert LabRun.objects.get().state == "queued"


def test_a_run_is_carried_out_once(operator: Actor, small: None) -> None:
    """A second delivery of the message does nothing, whether the first one still runs or not."""
    run = asked(operator)
    first = execution._claimed(run.pk)
    assert first is not None
    lab.run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempts) == ("running", 1)
    LabRun.objects.update(state="queued", attempts=0)
    carried_out(run)
    carried_out(run)
    assert (run.state, run.attempts) == ("done", 1)


def test_a_run_that_is_gone_is_left_quietly(operator: Actor, small: None) -> None:
    """Deleted between request and delivery."""
    run = asked(operator)
    number = run.pk
    lab.delete(operator, run)
    lab.run(number)
    assert not LabRun.objects.exists()


def endless(report: Progress) -> None:
    """Report a progress, then compute for ever without another report."""
    started = time.monotonic()
    while time.monotonic() - started < 0.3:
        report(0.25)
    while True:
        pass


@pytest.mark.parametrize("decide", [lab.cancel, lab.delete])
def test_a_run_that_is_no_longer_wanted_ends_at_once(
    operator: Actor, monkeypatch: pytest.MonkeyPatch, decide: Callable[[Actor, LabRun], object]
) -> None:
    """Whatever its child does; nothing is written over the decision."""
    know(monkeypatch, small_experiment(endless))
    run = asked(operator)
    decided: list[float] = []

    def decide_once() -> bool:
        if not decided:
            decided.append(time.monotonic())
            decide(operator, run)
        return False

    lab.run(run.pk, stopping=decide_once)
    # Within a second on a quiet machine; its child would never end by itself.
    assert time.monotonic() - decided[0] < 30
    row = LabRun.objects.first()
    assert row is None or (row.state, row.table) == ("cancelled", {})


def test_a_worker_that_ends_gives_its_run_back(
    operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its progress until then; after a restart the run is carried out from its beginning."""
    know(monkeypatch, small_experiment(endless))
    run = asked(operator)
    lab.run(run.pk, stopping=lambda: LabRun.objects.filter(progress__gt=0).exists())
    run.refresh_from_db()
    assert (run.state, run.progress, run.attempts, run.table) == ("queued", 0.0, 0, {})


def test_a_run_that_needs_too_much_memory_fails_and_is_not_repeated(
    operator: Actor, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """The worker survives it, and the row has reason and figure."""
    know(monkeypatch, small_experiment(lambda report: np.ones(2**31)))
    run = asked(operator)
    settings.LAB_MEMORY_MB = 100
    carried_out(run)
    assert (run.state, run.error_code) == ("failed", "out_of_memory")
    assert "100 MB" in run.error
    lab.requeue_lost(timezone.now() + timedelta(hours=1))
    assert carried_out(run).attempts == 1


def test_what_the_planner_refuses_is_told(operator: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal's own words, with its numbers."""

    def refuse(report: Progress) -> None:
        raise Infeasible(10, [3, 3, 3], 0.0, 0.2)

    know(monkeypatch, small_experiment(refuse))
    run = carried_out(asked(operator))
    assert run.state == "failed"
    assert "10 queries do not fit on 3 servers" in run.error


def test_a_break_is_told_and_left_to_the_log(
    operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row says where to look; the exception reaches the worker's log."""

    def break_off(report: Progress) -> None:
        raise ZeroDivisionError

    know(monkeypatch, small_experiment(break_off))
    run = asked(operator)
    with pytest.raises(ZeroDivisionError):
        lab.run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error) == ("failed", "The experiment broke; see the worker's log")


def lost(run: LabRun, attempts: int) -> None:
    """Let the run be one whose worker has not been heard of."""
    silent = timezone.now() - execution.LOST_AFTER - timedelta(seconds=1)
    LabRun.objects.filter(pk=run.pk).update(state="running", beat_at=silent, attempts=attempts)


def test_the_run_of_a_lost_worker_is_queued_anew(operator: Actor, small: None) -> None:
    """And the lost one, should it return while the next one works, stops."""
    run = asked(operator)
    lost(run, attempts=1)
    run.refresh_from_db()
    heartbeat = Heartbeat(lambda: execution._ours(run))
    assert heartbeat(0.25)
    lost(run, attempts=1)
    lab.requeue_lost(timezone.now())
    assert LabRun.objects.get().state == "queued"
    LabRun.objects.update(state="running", attempts=2)
    assert not heartbeat(0.5)
    assert LabRun.objects.get().progress == 0.0


def test_a_run_that_loses_worker_after_worker_fails(operator: Actor, small: None) -> None:
    """It may well be what ends them."""
    run = asked(operator)
    lost(run, attempts=execution.MAX_ATTEMPTS)
    lab.requeue_lost(timezone.now())
    run.refresh_from_db()
    assert (run.state, run.error_code) == ("failed", "worker_lost")
    assert run.finished_at is not None


def test_a_run_that_beats_is_left_alone(operator: Actor, small: None) -> None:
    run = asked(operator)
    LabRun.objects.update(state="running", beat_at=timezone.now(), attempts=1)
    lab.requeue_lost(timezone.now())
    run.refresh_from_db()
    assert run.state == "running"


def test_over_is_over(operator: Actor, small: None) -> None:
    """A table is not cancelled away."""
    run = carried_out(asked(operator))
    with pytest.raises(Conflict) as refused:
        lab.cancel(operator, run)
    assert refused.value.code == "over"
    assert LabRun.objects.get().state == "done"


def test_again_is_the_same_anew(operator: Actor, small: None) -> None:
    first = carried_out(lab.request(operator, PLANNER, NAME, {"height": 7}, [2.0], ["double"]))
    second = carried_out(lab.repeat(operator, first))
    assert second.pk != first.pk
    assert (second.parameters, second.table) == (first.parameters, first.table)


def test_every_decision_is_in_the_audit_log(operator: Actor, small: None) -> None:
    run = asked(operator)
    lab.cancel(operator, run)
    lab.delete(operator, run)
    rows = AuditEntry.objects.order_by("id").values_list("action", "actor", "object")
    name = f"run {AuditEntry.objects.filter(action='lab.request').get().object[4:]}"
    assert [row[0] for row in rows] == ["lab.request", "lab.cancel", "lab.delete"]
    assert {row[1:] for row in rows} == {("a-operator", name)}
    assert AuditEntry.objects.get(action="lab.request").after["parameters"]["height"] == 2


def test_the_largest_table_is_larger_than_any_figure_of_the_papers() -> None:
    """At ten seeds and with every algorithm there is."""
    from algorithms.lab.experiments import EXPERIMENTS  # noqa: PLC0415

    for found in EXPERIMENTS.values():
        for one in found:
            assert 10 * len(one.values) * len(one.choices) < requests.MAX_ROWS
