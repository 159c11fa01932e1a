from collections import Counter

from workers.demo.mice import draw_mice

STREAMS = [f"tile-{number}" for number in range(50)]


def test_mice_are_named_in_order_and_read_one_to_four_streams() -> None:
    mice = draw_mice(500, STREAMS)
    assert mice[0].name == "mouse-000001"
    assert len({mouse.name for mouse in mice}) == 500
    assert {len(mouse.streams) for mouse in mice} == {1, 2, 3, 4}
    assert all(len(set(mouse.streams)) == len(mouse.streams) for mouse in mice)


def test_more_mice_leave_the_first_as_they_are() -> None:
    """A restart with a larger number adds queries; it does not replace any."""
    assert draw_mice(40, STREAMS)[:15] == draw_mice(15, STREAMS)


def test_popular_streams_are_read_most() -> None:
    readers = Counter(stream for mouse in draw_mice(3000, STREAMS) for stream in mouse.streams)
    assert readers["tile-0"] > 2 * readers["tile-4"] > 2 * readers["tile-30"]


def test_few_streams_are_enough() -> None:
    assert {mouse.streams for mouse in draw_mice(5, ["only"])} == {("only",)}


def test_no_mice_are_no_queries() -> None:
    assert draw_mice(0, STREAMS) == []
