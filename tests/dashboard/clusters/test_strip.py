"""Labels of events on the time strip."""

import pytest

from dashboard.clusters.strip import Flag, join_flags

pytestmark = pytest.mark.nightly("pages")


def flag(x: float, label: str) -> Flag:
    return Flag(x, label, f"{label} at {x}", "/", "bad")


@pytest.mark.parametrize(("x", "anchor"), [(1.0, "start"), (50.0, "middle"), (99.0, "end")])
def test_a_label_stays_on_the_strip(x: float, anchor: str) -> None:
    label = flag(x, "! a long label")
    start, stop = label.label_range
    assert label.anchor == anchor
    assert 0 <= start < stop <= 100


def test_events_whose_labels_would_overlap_share_one() -> None:
    """A label at the end of the strip extends to the left of its event."""
    joined = join_flags([flag(92.5, "! 3"), flag(98.0, "! application")])
    assert [row.label for row in joined] == ["! 2"]
    assert "98.0" in joined[0].title


def test_events_that_are_apart_keep_their_labels() -> None:
    flags = [flag(20.0, "! latency p95"), flag(60.0, "! application")]
    assert join_flags(flags) == flags
