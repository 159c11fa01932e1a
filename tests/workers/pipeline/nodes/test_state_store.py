"""The state of a node: nothing is asked twice, and only what has changed is written."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workers.pipeline.nodes.state_store import NAMES, NodeStore


class Counted:
    """What Spark's map of state does, with its round trips counted."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.trips: list[str] = []

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:  # noqa: N802 - Spark's name
        self.trips.append(f"get {key[0]}")
        return (self.values[key[0]],) if key[0] in self.values else None

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:  # noqa: N802
        self.trips.append(f"put {key[0]}")
        self.values[key[0]] = value[0]

    def removeKey(self, key: tuple[str]) -> None:  # noqa: N802
        self.trips.append(f"remove {key[0]}")
        del self.values[key[0]]


def opened(state: Any) -> NodeStore:
    state.trips.clear()
    return NodeStore(state)


def test_a_turn_without_a_change_is_one_round_trip() -> None:
    """Whatever is asked for that is not there."""
    state = Counted()
    first = opened(state)
    first.put("a", b"1")
    first.save()
    second = opened(state)
    assert second.get("b") is None
    second.put("a", second.get("a") or b"")
    second.save()
    assert state.trips == [f"get {NAMES}", "get a"]


def test_what_is_written_again_and_again_is_written_once() -> None:
    state = Counted()
    store = opened(state)
    for value in (b"1", b"2", b"3"):
        store.put("a", value)
        assert store.get("a") == value
    store.put("gone", b"x")
    store.remove("gone")
    assert store.get("gone") is None
    store.save()
    assert [trip for trip in state.trips if trip.startswith("put")] == ["put a", f"put {NAMES}"]


@given(
    turns=st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, b"1", b"2"]))), max_size=5
    )
)
def test_it_is_a_dictionary_over_all_turns(turns: list[list[tuple[str, bytes | None]]]) -> None:
    state, plain = Counted(), dict[str, bytes]()
    for turn in turns:
        store = opened(state)
        for name, value in turn:
            assert store.get(name) == plain.get(name)
            if value is None:
                plain.pop(name, None)
                store.remove(name)
            else:
                plain[name] = value
                store.put(name, value)
        store.save()
        assert {name: found for name, found in state.values.items() if name != NAMES} == plain
