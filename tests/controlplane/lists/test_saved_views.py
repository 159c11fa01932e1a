"""Saved views: per user and list, bounded, at most one default."""

from collections.abc import Callable

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.lists import saved_views
from controlplane.lists.saved_views import change_view, default_view, delete_view, save_view
from controlplane.models import SavedView
from tests.support import cluster as made


@pytest.fixture
def ann(db: None) -> Actor:
    return made.actor("viewer", "ann")


def test_views_are_those_of_a_user_and_a_list(ann: Actor) -> None:
    other = made.actor("viewer", "bob")
    view = save_view(ann, "queries", " hot ", "state:live rate>5", "-rate", is_default=False)
    save_view(ann, "streams", "hot", "rate>5", "", is_default=False)
    rows = saved_views.saved_views(ann, "queries")
    assert [(row.name, row.filter, row.order) for row in rows] == [
        ("hot", "state:live rate>5", "-rate")
    ]
    assert len(saved_views.saved_views(ann)) == 2
    assert saved_views.saved_views(other) == []
    with pytest.raises(NotFound):
        change_view(other, view.pk, name="mine")
    with pytest.raises(NotFound):
        delete_view(other, view.pk)
    delete_view(ann, view.pk)
    assert saved_views.saved_views(ann, "queries") == []


def test_a_list_has_one_default(ann: Actor) -> None:
    first = save_view(ann, "queries", "one", "", "", is_default=True)
    second = save_view(ann, "queries", "two", "rate>1", "", is_default=True)
    save_view(ann, "audit", "three", "", "", is_default=True)
    assert default_view(ann, "queries") == second
    change_view(ann, first.pk, is_default=True, name="first")
    assert default_view(ann, "queries") == first
    change_view(ann, first.pk, is_default=False)
    assert default_view(ann, "queries") is None


@pytest.mark.parametrize(
    ("values", "field"),
    [
        (("lists", "a", "", ""), "list"),
        (("queries", " ", "", ""), "name"),
        (("queries", "a" * 61, "", ""), "name"),
        (("queries", "a", "lost:7", ""), "filter"),
        (("queries", "a", "x" * 501, ""), "filter"),
        (("queries", "a", "", "lost"), "order"),
        (("audit", "a", "", "at"), "order"),
    ],
)
def test_a_view_is_checked(ann: Actor, values: tuple[str, ...], field: str) -> None:
    with pytest.raises(Invalid) as fault:
        save_view(ann, *values, is_default=False)
    assert list(fault.value.fields) == [field]


def test_names_are_unique_and_views_bounded(ann: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    save_view(ann, "queries", "a", "", "", is_default=False)
    view = save_view(ann, "queries", "b", "", "", is_default=False)
    changes: tuple[Callable[[], SavedView], ...] = (
        lambda: save_view(ann, "queries", "a", "", "", is_default=False),
        lambda: change_view(ann, view.pk, name="a"),
    )
    for change in changes:
        with pytest.raises(Conflict) as taken:
            change()
        assert taken.value.code == "taken"
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 2)
    with pytest.raises(Conflict) as full:
        save_view(ann, "queries", "c", "", "", is_default=False)
    assert (full.value.code, full.value.data) == ("too_many", {"limit": 2})
