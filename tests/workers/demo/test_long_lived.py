from collections import Counter

from workers.demo.taxis import draw_long_lived

STREAMS = [f"tile-{number}" for number in range(50)]


def test_queries_are_named_in_order_and_read_one_to_four_streams() -> None:
    queries = draw_long_lived(500, STREAMS)
    assert queries[0].name == "mouse-000001"
    assert len({query.name for query in queries}) == 500
    assert {len(query.streams) for query in queries} == {1, 2, 3, 4}
    assert all(len(set(query.streams)) == len(query.streams) for query in queries)


def test_more_queries_leave_the_first_as_they_are() -> None:
    """A restart with a larger number adds queries; it does not replace any."""
    assert draw_long_lived(40, STREAMS)[:15] == draw_long_lived(15, STREAMS)


def test_popular_streams_are_read_most() -> None:
    readers = Counter(
        stream for query in draw_long_lived(3000, STREAMS) for stream in query.streams
    )
    assert readers["tile-0"] > 2 * readers["tile-4"] > 2 * readers["tile-30"]


def test_few_streams_are_enough() -> None:
    assert {query.streams for query in draw_long_lived(5, ["only"])} == {("only",)}


def test_none_are_drawn() -> None:
    assert draw_long_lived(0, STREAMS) == []
