"""Patterns of topics: whole names, in linear time, and no more topics than a stream reads."""

import pytest

from controlplane.wire.topics import places
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.places import TooManyTopics, matching
from controlplane.wire.topics.source import TopicSource

TOPICS = {"orders": 3, "orders-eu": 2, "reorders": 1}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("orders|reorders", {"orders", "reorders"}),
        ("(?i)ORDERS", {"orders"}),
        ("none", set()),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, expected: set[str]) -> None:
    assert matching(pattern, TOPICS).keys() == expected


def test_more_topics_or_partitions_than_a_stream_reads_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that were deleted count, too."""
    monkeypatch.setattr(places, "MOST_TOPICS", 2)
    monkeypatch.setattr(places, "MOST_PARTITIONS", 5)
    assert len(matching("orders.*", TOPICS, {"orders": 9})) == 2
    for pattern, topics, known in (
        (".*", TOPICS, {}), ("orders.*", TOPICS, {"orders-old": 0}),
        ("orders.*", TOPICS | {"orders": 4}, {}), ("orders", TOPICS, {"orders-old": 3}),
    ):  # fmt: skip
        with pytest.raises(TooManyTopics):
            matching(pattern, topics, known)


def test_a_pattern_is_matched_in_linear_time() -> None:
    """A matcher that backtracks would not end: each further letter doubles its time."""
    names = {f"{'a' * 240}-{number}": 1 for number in range(1_000)}
    assert not matching("(a|a)*(a|aa)+b", names)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"topic": "orders"}, "topic"),
        ({"topic_pattern": ""}, "topic"),
        ({"topic_pattern": "("}, "topic_pattern"),
        ({"topic_pattern": "a)(b"}, "topic_pattern"),
        ({"topic_pattern": r"\Qa"}, "topic_pattern"),
        ({"topic_pattern": "a" * 250}, "topic_pattern"),
        ({"offsets": {"0": 5}}, "offsets"),
        ({"produce": "admin"}, "produce"),
    ],
)
def test_a_wrong_pattern_is_refused_with_its_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(BadSource) as refused:
        TopicSource.from_json({"servers": "broker:9092", "topic_pattern": "orders.*"} | change)
    assert field in refused.value.fields
