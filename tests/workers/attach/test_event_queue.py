"""The queue of a job: bounded, oldest out first, and every loss counted."""

import threading

from workers.attach.reporter import EventQueue


def filled(most: int, texts: str, lifecycle: str = "") -> EventQueue:
    """Return a queue that was given one event per letter; those in lifecycle do not pass."""
    waiting = EventQueue(most)
    for text in texts:
        waiting.put(text, passing=text not in lifecycle)
    return waiting


def test_events_leave_in_the_order_they_came() -> None:
    assert filled(10, "abc").take(10, 100) == ["a", "b", "c"]


def test_a_full_queue_drops_its_oldest_and_counts() -> None:
    waiting = filled(3, "abcde")
    assert (waiting.take(10, 100), waiting.dropped) == (["c", "d", "e"], 2)


def test_beginnings_and_ends_of_queries_outlive_progress() -> None:
    """A gap in a chart is worth less than not knowing that a query failed."""
    waiting = filled(3, "Sabcd", lifecycle="S")
    assert waiting.take(10, 100) == ["S", "c", "d"]


def test_beginnings_alone_are_bounded_too() -> None:
    waiting = filled(2, "STU", lifecycle="STU")
    assert (waiting.take(10, 100), waiting.dropped) == (["T", "U"], 1)


def test_a_message_is_bounded_by_count_and_size() -> None:
    waiting = filled(10, "abcdef")
    assert waiting.take(2, 100) == ["a", "b"]
    assert waiting.take(10, 3) == ["c", "d", "e"]
    assert waiting.take(10, 0) == ["f"], "one event goes, however large"


def test_no_event_is_lost_or_doubled_among_threads() -> None:
    """Spark calls from one thread, the sender takes from another."""
    waiting = EventQueue(10_000)
    taken: list[str] = []

    def write() -> None:
        for number in range(1000):
            waiting.put(str(number), passing=True)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers) or len(waiting):
        taken += waiting.take(7, 1000)
    assert len(taken) == 4000
    assert waiting.dropped == 0
