"""A run is carried out once, stops when it is not wanted, and is never lost or stuck."""

from datetime import timedelta

import pytest
from django.utils import timezone

from algorithms.errors import Infeasible
from algorithms.experiments import Table, experiment
from algorithms.vocabulary import Progress
from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Forbidden, Invalid
from controlplane.lab import execution, requests
from controlplane.models import AuditEntry, LabRun
from tests.support.lab import NAME, PLANNER, know, small_experiment

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


def test_all_faults_are_told_at_once_by_field(operator: Actor, small: None) -> None:
    """Nobody fixes a form one field at a time."""
    with pytest.raises(Invalid) as refused:
        lab.request(operator, PLANNER, NAME, {"height": 0, "width": 3.0}, [-1.0], ["magic"])
    assert set(refused.value.fields) == {"height", "width", "values", "series"}
    assert not LabRun.objects.exists()


@pytest.mark.parametrize(
    ("name", "parameters", "values", "series", "field"),
    [
        ("nothing", {}, None, None, "experiment"),
        (NAME, {"depth": 1}, None, None, "depth"),
        (NAME, {"height": 1.5}, None, None, "height"),
        (NAME, {}, [], None, "values"),
        (NAME, {}, [float("nan")], None, "values"),
        (NAME, {}, None, [], "series"),
        (NAME, {"seeds": 10_000}, None, None, "values"),
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


def test_a_run_is_carried_out_once(operator: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second delivery of the message finds it claimed, also while the first one runs."""
    trials: list[int] = []

    def deliver_again(report: Progress) -> None:
        trials.append(1)
        lab.run(run.pk)

    know(monkeypatch, small_experiment(deliver_again))
    run = asked(operator)
    carried_out(run)
    carried_out(run)
    assert (run.state, run.attempts, len(trials)) == ("done", 1, 3)


def test_a_run_that_is_gone_is_left_quietly(operator: Actor, small: None) -> None:
    """Deleted between request and delivery."""
    run = asked(operator)
    number = run.pk
    lab.delete(operator, run)
    lab.run(number)
    assert not LabRun.objects.exists()


@pytest.mark.parametrize("decide", [lab.cancel, lab.delete])
def test_a_run_that_is_no_longer_wanted_stops(
    operator: Actor, monkeypatch: pytest.MonkeyPatch, decide: object
) -> None:
    """With the next report of progress; nothing is written over the decision."""
    monkeypatch.setattr(execution, "PROGRESS_EVERY_S", 0.0)
    trials: list[int] = []

    def cancel_in_the_second(report: Progress) -> None:
        trials.append(1)
        if len(trials) == 2:
            decide(operator, run)  # type: ignore[operator]
        report(0.5)

    know(monkeypatch, small_experiment(cancel_in_the_second))
    run = asked(operator)
    lab.run(run.pk)
    assert len(trials) == 2
    left = LabRun.objects.first()
    assert left is None or (left.state, left.table) == ("cancelled", {})


@pytest.mark.parametrize(("every_s", "written"), [(60.0, 1), (0.0, 3)])
def test_progress_is_written_now_and_then(
    operator: Actor, monkeypatch: pytest.MonkeyPatch, every_s: float, written: int
) -> None:
    """A hundred reports in a moment are no hundred writes."""
    monkeypatch.setattr(execution, "PROGRESS_EVERY_S", every_s)
    seen: list[float] = []

    def report_often(report: Progress) -> None:
        for step in range(100):
            report(step / 100)
        seen.append(LabRun.objects.get().progress)

    know(monkeypatch, small_experiment(report_often))
    carried_out(asked(operator))
    assert len(set(seen)) == written
    assert seen == sorted(seen)


def test_a_worker_that_ends_gives_its_run_back(operator: Actor, small: None) -> None:
    """After a restart the run is carried out from its beginning."""
    run = asked(operator)
    lab.run(run.pk, stopping=lambda: True)
    run.refresh_from_db()
    assert (run.state, run.table) == ("queued", {})
    assert carried_out(run).state == "done"


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


def test_the_run_of_a_lost_worker_is_queued_anew(
    operator: Actor, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the lost one, should it come back while the next one works, stops."""
    monkeypatch.setattr(execution, "PROGRESS_EVERY_S", 0.0)
    run = asked(operator)
    lost(run, attempts=1)
    run.refresh_from_db()
    report = execution._progress_of(run, lambda: False)
    lab.requeue_lost(timezone.now())
    assert LabRun.objects.get().state == "queued"
    LabRun.objects.update(state="running", attempts=2)
    with pytest.raises(execution.Unwanted):
        report(0.5)
    assert LabRun.objects.get().progress == 0.0


def test_a_run_that_loses_worker_after_worker_fails(operator: Actor, small: None) -> None:
    """It may well be what ends them."""
    run = asked(operator)
    lost(run, attempts=execution.MAX_ATTEMPTS)
    lab.requeue_lost(timezone.now())
    run.refresh_from_db()
    assert (run.state, run.error) == ("failed", "The worker was lost; run it again")
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
    from algorithms.experiments import EXPERIMENTS  # noqa: PLC0415

    for found in EXPERIMENTS.values():
        for one in found:
            assert 10 * len(one.values) * len(one.choices) < requests.MAX_ROWS
