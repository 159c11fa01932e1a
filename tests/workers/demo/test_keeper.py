"""The keeper against the real API, called in process."""

import httpx
import pytest

from controlplane.models import Query
from workers.demo.keeper import QueryChanges, QueryKeeper, RequestRejected, WeirApi, changes
from workers.demo.program import ProgramQuery
from workers.demo.taxis import TEXT

pytestmark = pytest.mark.django_db

A, B, C = (ProgramQuery(f"trip-{name}-0", ("tile-1-1",), TEXT) for name in "abc")
MOUSE = ProgramQuery("mouse-000001", ("tile-1-1", "tile-1-2"), TEXT)


def keeper(api: WeirApi) -> QueryKeeper:
    return QueryKeeper(api, ("trip-", "mouse-"))


def live() -> set[str]:
    return set(Query.objects.filter(state="pending").values_list("name", flat=True))


def test_changes_are_what_is_missing_and_what_is_left_over() -> None:
    assert changes({A.name, B.name}, [B, C]) == QueryChanges(submit=(C,), end=(A.name,))


def test_registering_twice_gives_the_same_ids(api: WeirApi) -> None:
    declaration = {"name": "tile-1-1", "title": "One", "declared_rate": 2.0, "meta": {"tile_x": 1}}
    assert api.register([declaration]) == api.register([declaration])


def test_trips_arrive_and_depart(api: WeirApi) -> None:
    keep = keeper(api)
    keep.step([A, B])
    assert live() == {A.name, B.name}
    keep.step([B, C, MOUSE])
    assert live() == {B.name, C.name, MOUSE.name}


def test_nothing_to_change_asks_nothing(api: WeirApi) -> None:
    keep = keeper(api)
    keep.step([A])
    assert keep.step([A]) == QueryChanges((), ())


def test_a_new_process_ends_what_should_have_ended_and_submits_nothing_twice(
    api: WeirApi,
) -> None:
    """Trips may end while the replay is down; those still on the way are already there."""
    keeper(api).step([A, B])
    assert keeper(api).step([B, C]) == QueryChanges((C,), (A.name,))
    assert live() == {B.name, C.name}


def test_queries_of_others_are_left_alone(api: WeirApi) -> None:
    """Somebody's own query may even have our prefix within its name."""
    api.submit([ProgramQuery("my-trip-to-town", ("tile-1-1",), TEXT)])
    keeper(api).step([])
    assert live() == {"my-trip-to-town"}


def test_a_query_ended_by_hand_is_no_lasting_obstacle(api: WeirApi) -> None:
    """One refusal, then what lives is asked anew."""
    keep = keeper(api)
    keep.step([A, B])
    api.end([A.name])
    with pytest.raises(RequestRejected):
        keep.step([B])
    assert keep.step([B]) == QueryChanges((), ())


def test_an_answer_that_got_lost_is_repaired(api: WeirApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queries were saved, the connection broke before the answer came."""
    keep, submit = keeper(api), api.submit

    def saved_but_unheard(wanted: list[ProgramQuery]) -> None:
        submit(wanted)
        raise httpx.ReadError("connection lost")

    monkeypatch.setattr(api, "submit", saved_but_unheard)
    with pytest.raises(httpx.ReadError):
        keep.step([A])
    monkeypatch.undo()
    keep.step([A, B])
    assert live() == {A.name, B.name}


def test_more_than_one_page_and_one_bulk_are_handled(api: WeirApi) -> None:
    many = [ProgramQuery(f"trip-{number}-0", ("tile-1-1",), TEXT) for number in range(1_100)]
    keeper(api).step(many)
    assert keeper(api).step(many) == QueryChanges((), ())
    assert Query.objects.count() == 1_100
