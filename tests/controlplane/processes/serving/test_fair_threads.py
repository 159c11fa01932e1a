"""No user holds all threads, nobody holds one beyond its time, and the lines have bounds."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.processes.runtime.request_bounds import Lane
from controlplane.processes.serving.cancellation import RequestCancelled
from controlplane.processes.serving.fair_threads import FairThreads, Owner
from controlplane.processes.serving.refusals import Refusal

ADA, BOB, EVE = (Owner(name, is_known=True) for name in ("ada", "bob", "eve"))
PATIENCE_S = 60
ENDLESS_SQL = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT sum(n) FROM t"


class Gate:
    """Work that ends when it may, and the most of it at once."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.inside: list[str] = []
        self.begun: list[str] = []

    def work(self, name: str) -> str:
        self.begun.append(name)
        self.inside.append(name)
        assert self.open.wait(PATIENCE_S)
        self.inside.remove(name)
        return name


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


def started(threads: FairThreads, gate: Gate, owner: Owner, count: int) -> list[asyncio.Task[str]]:
    return [asyncio.create_task(threads.run(owner, gate.work, owner.name)) for _ in range(count)]


async def test_a_user_holds_half_of_the_threads_and_others_find_one() -> None:
    threads, gate = FairThreads(Lane("test", 4)), Gate()
    tasks = started(threads, gate, ADA, 10)
    await until(lambda: len(gate.inside) == 2)
    # All clients without a login are one user here, whatever their addresses are.
    for number in range(5):
        tasks += started(threads, gate, Owner(f"192.0.2.{number}"), 1)
    await until(lambda: len(gate.inside) == 3)
    tasks += started(threads, gate, BOB, 2)
    await until(lambda: len(gate.inside) == 4)
    assert sorted(gate.inside) == ["192.0.2.0", "ada", "ada", "bob"]
    gate.open.set()
    await asyncio.gather(*tasks)
    assert len(gate.begun) == 17


async def test_lines_take_turns() -> None:
    """Who comes last does not wait behind all requests of another user."""
    threads, gate = FairThreads(Lane("test", 1)), Gate()
    tasks = started(threads, gate, ADA, 5)
    await until(lambda: len(gate.inside) == 1)
    tasks += started(threads, gate, BOB, 2) + started(threads, gate, EVE, 1)
    await asyncio.sleep(0)
    gate.open.set()
    await asyncio.gather(*tasks)
    assert gate.begun == ["ada", "ada", "bob", "eve", "ada", "bob", "ada", "ada"]


async def test_lines_have_bounds() -> None:
    """Of a user or an address, of all without a login, and of time."""
    threads, gate = FairThreads(Lane("test", 1, waiting=2, waiting_of_share=3, wait_s=0.2)), Gate()
    running = started(threads, gate, ADA, 1)
    await until(lambda: len(gate.inside) == 1)
    waiting = [
        *started(threads, gate, ADA, 3),
        *(task for name in ("192.0.2.1", "192.0.2.2") for task in
          started(threads, gate, Owner(name), 2)),
    ]  # fmt: skip
    refused = await asyncio.gather(*waiting, return_exceptions=True)
    codes = [refusal.code for refusal in refused if isinstance(refusal, Refusal)]
    assert codes == ["busy", "busy", "too_many_requests", "busy", "busy", "busy", "busy"]
    assert [r.status for r in refused if isinstance(r, Refusal)] == [503, 503, 429, *[503] * 4]
    gate.open.set()
    assert await asyncio.gather(*running) == ["ada"]
    # Nobody waits any more, and nothing is held.
    assert await threads.run(BOB, lambda: 1) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["loop", "swallowed", "wait"])
async def test_work_is_cancelled_at_its_limit(kind: str) -> None:
    """Also where it takes the exception for one of its own; the thread then answers others."""
    release = threading.Event()

    def work() -> None:
        if kind == "wait":
            release.wait(PATIENCE_S)
        elif kind == "swallowed":
            while True:
                try:
                    spin()
                except Exception:  # noqa: BLE001 - as a careless view does
                    continue
        spin()

    lane = Lane("test", 2, cpu_s=0.3) if kind == "loop" else Lane("test", 2, wall_s=0.3)
    threads = FairThreads(lane)
    with pytest.raises(Refusal) as refused:
        await threads.run(ADA, work)
    assert (refused.value.status, refused.value.code) == (503, "time_limit")
    if kind == "wait":
        # A wait of a library ends by itself; others have the other thread meanwhile.
        assert await threads.run(BOB, lambda: 1) == 1
        release.set()
    thread_ids = await asyncio.gather(
        *(threads.run(owner, _name_and_count) for owner in (ADA, BOB, EVE))
    )
    assert {count for _, count in thread_ids} == {0}


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
async def test_a_query_is_interrupted_in_its_database() -> None:
    """Long before it would end; its thread then asks the database again."""
    threads = FairThreads(Lane("test", 1, wall_s=0.3))

    def ask() -> None:
        with connection.cursor() as cursor:
            cursor.execute(ENDLESS_SQL)

    with pytest.raises(Refusal) as refused:
        await threads.run(ADA, ask)
    assert refused.value.code == "time_limit"
    assert (await threads.run(BOB, _name_and_count))[1] == 0
    await threads.run(BOB, connections.close_all)


def spin() -> None:
    number = 0
    while True:
        number += 1


def _name_and_count() -> tuple[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM auth_user")
        return threading.current_thread().name, cursor.fetchone()[0]


def test_threads_are_given_back_after_their_event_loop_has_ended() -> None:
    threads, gate = FairThreads(Lane("test", 2)), Gate()

    async def abandoned() -> None:
        tasks = started(threads, gate, ADA, 1) + started(threads, gate, BOB, 3)
        await until(lambda: len(gate.inside) == 2)
        assert not any(task.done() for task in tasks)

    asyncio.run(abandoned())
    gate.open.set()
    assert asyncio.run(threads.run(EVE, lambda: 1)) == 1
    assert not threads._lines
    asyncio.run(until(lambda: threads._free == 2))


async def test_errors_of_the_work_are_raised() -> None:
    threads = FairThreads(Lane("test", 1))

    def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await threads.run(ADA, broken)
    with pytest.raises(RequestCancelled):
        await threads.run(ADA, _raises_cancelled)
    assert await threads.run(ADA, lambda: 1) == 1


def _raises_cancelled() -> None:
    raise RequestCancelled


@settings(max_examples=25)
@given(
    size=st.integers(1, 4),
    events=st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=16),
)
def test_nobody_has_more_than_half_and_no_thread_is_lost(
    size: int, events: list[tuple[str, bool]]
) -> None:
    """Law, for any order of requests and their ends."""

    async def run() -> None:
        threads, gates, tasks = FairThreads(Lane("law", size)), [], []
        try:
            for name, ends in events:
                gate = Gate()
                gates.append(gate)
                if ends:
                    gate.open.set()
                tasks += started(threads, gate, Owner(name, is_known=True), 1)
                await asyncio.sleep(0)
                held: dict[str, Any] = dict(threads._held)
                assert all(count <= (size + 1) // 2 for count in held.values())
                assert sum(held.values()) + threads._free == size
        finally:
            for gate in gates:
                gate.open.set()
        await asyncio.gather(*tasks)
        await until(lambda: threads._free == size)
        assert not threads._lines
        assert not threads._held.total()

    asyncio.run(run())
