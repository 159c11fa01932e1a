"""The notation of a join's pairs: what stands between the sides, and what only looks like it."""

import pytest

from dashboard.queries.forms import form_faults, parsed

pytestmark = pytest.mark.nightly("pages")


def pairs(written: str) -> tuple[list[list[str]], dict[str, list[str]]]:
    spec, faults = parsed({"on": written, "tasks": "1", "window": "60",
                                "lateness": "1"})  # fmt: skip
    return [list(pair) for pair in spec.text.on], faults


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("car <-> car", [["car", "car"]]),
        ("car<->x", [["car", "x"]]),
        ("\n car <-> car\n\nx <-> y\n", [["car", "car"], ["x", "y"]]),
        ("x // 100\n  + 1 <-> y", [["x // 100\n  + 1", "y"]]),
        ("car = 3 <-> x <-1", [["car = 3", "x <-1"]]),
        ("concat('<->', 'it''s', cast(car as text)) <-> '<->'",
         [["concat('<->', 'it''s', cast(car as text))", "'<->'"]]),
        ('"<->" <-> car', [['"<->"', "car"]]),
        ("", []),
    ],
)  # fmt: skip
def test_the_sides_of_a_pair_are_told_apart(written: str, found: list[list[str]]) -> None:
    assert pairs(written) == (found, {})


UNCLOSED = "'" * 200_001 + " <-> x"


@pytest.mark.parametrize(
    "wrong",
    ["car = car", "car <-> ", "<-> car", "a <-> b <-> c", "car", UNCLOSED],
    ids=["equal", "no right", "no left", "three", "no sign", "unclosed"],
)
def test_a_line_that_is_no_pair_keeps_its_number(wrong: str) -> None:
    """So that the faults of those behind it stand at theirs."""
    found, faults = pairs(f"car <-> car\n{wrong}\nx <-> y")
    assert list(faults) == ["text.on.1"]
    assert (found[0], found[2]) == (["car", "car"], ["x", "y"])
    (shown,) = form_faults(faults)["on"]
    assert (shown.of, shown.why) == ("pair 2", "Write left <-> right, once in a line")
