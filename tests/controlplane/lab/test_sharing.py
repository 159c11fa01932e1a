"""Who sees a run, who changes it, and what its name may be."""

import pytest

from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.errors import Forbidden, Invalid, NotFound
from controlplane.lab.runs import LabFilters, newest_done, run_by_id, runs_listing
from controlplane.models import AuditEntry, LabRun
from tests.controlplane.lab.small_experiments import NAME, PLANNER, know, small_experiment
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small experiment is known."""
    know(monkeypatch, small_experiment())


@pytest.fixture
def mine(operator: Actor) -> LabRun:
    """A finished run that only its owner and admins see."""
    options = lab.RunOptions("Mine", "owner")
    run = lab.request(operator, PLANNER, NAME, {"seeds": 1}, options=options)
    lab.run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.title) == ("done", "Mine")
    return run


def another() -> Actor:
    return actor("operator", "another")


def listed(by: Actor) -> list[int]:
    return [run.pk for run in runs_listing(LabFilters(), by).page.rows]


def test_a_run_of_its_owner_is_hidden_from_others(mine: LabRun, operator: Actor) -> None:
    """In lists, by its number, and as the newest result; admins see it."""
    other, admin = another(), actor("admin")
    assert listed(operator) == listed(admin) == [mine.pk]
    assert listed(other) == []
    assert run_by_id(mine.pk, operator) == mine
    with pytest.raises(NotFound):
        run_by_id(mine.pk, other)
    assert newest_done(other) == {}
    assert newest_done(operator) == {(PLANNER, NAME): mine}


def test_others_change_nothing_of_a_hidden_run(mine: LabRun) -> None:
    """As if there was none."""
    other = another()
    for decide in (lab.cancel, lab.delete, lab.change):
        with pytest.raises(NotFound):
            decide(other, mine)


def test_the_owner_shares_and_renames_a_run(mine: LabRun, operator: Actor, viewer: Actor) -> None:
    """The change is in the audit log."""
    lab.change(operator, mine, "Ours", "everyone")
    assert run_by_id(mine.pk, viewer).title == "Ours"
    entry = AuditEntry.objects.get(action="lab.change")
    assert (entry.before["visibility"], entry.after["visibility"]) == ("owner", "everyone")
    with pytest.raises(Forbidden):
        lab.change(viewer, mine, "Theirs")
    other = another()
    # Every operator may correct a name; hiding is a decision of the owner.
    assert lab.change(other, mine, "").title == f"Run {mine.pk}"
    with pytest.raises(Invalid) as refused:
        lab.change(other, mine, visibility="owner")
    assert list(refused.value.fields) == ["visibility"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (lab.RunOptions(name="x" * 101), "name"),
        (lab.RunOptions(visibility="nobody"), "visibility"),
        (lab.RunOptions(master="spark"), "master"),
        (lab.RunOptions(master="spark://elsewhere:7077"), "master"),
    ],
)
def test_wrong_options_are_refused(operator: Actor, options: lab.RunOptions, field: str) -> None:
    """A master that the site does not allow is one of them."""
    with pytest.raises(Invalid) as refused:
        lab.request(operator, PLANNER, NAME, options=options)
    assert list(refused.value.fields) == [field]


def test_a_repeated_run_keeps_name_and_visibility(mine: LabRun, operator: Actor) -> None:
    again = lab.repeat(operator, mine)
    assert (again.name, again.visibility, again.pk > mine.pk) == ("Mine", "owner", True)
