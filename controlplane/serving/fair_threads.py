"""Threads that answer requests of many users, of which none can hold all.

A user starts another request only if more threads are free than it holds: it never has more than
half of them, and each further user finds one. Who waits does so in the event loop, in a line of its
own; the lines take turns.
"""

import asyncio
import contextvars
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from controlplane.runtime.request_bounds import Lane
from controlplane.serving.cancellation import Job
from controlplane.serving.refusals import Refusal

Result = TypeVar("Result")

# How often the time of a request is compared with its limits (s).
LOOK_S: Final = 0.5
# A thread that a library lets wait ends with that: it is cancelled again after so many seconds.
_REPEAT_S: Final = 5.0
_ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose request it is: a user, or the network of a client without a session or token."""

    name: str
    is_known: bool = False

    @property
    def share(self) -> str:
        """Return under which name threads and bytes are counted."""
        return self.name if self.is_known else _ANONYMOUS


class FairThreads:
    """The threads of a lane."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self._threads = ThreadPoolExecutor(lane.threads, thread_name_prefix=f"web-{lane.name}")
        # Threads are given back automatically, so that none is lost with an event loop that ends.
        self._lock = threading.RLock()
        self._free = lane.threads
        self._held: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        # The first has its turn next.
        self._lines: dict[Owner, deque[asyncio.Future[None]]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, owner: Owner, work: Callable[..., Result], *arguments: Any) -> Result:
        """Return `work(*arguments)`, which a thread computes in the owner's turn.

        Raises `Refusal` if too many wait, for too long, or beyond the limits of time; then the work
        is cancelled.
        """
        await self._take_turn(owner)
        job = Job(self.lane)
        context = contextvars.copy_context()
        submitted = self._threads.submit(context.run, job.run, work, *arguments)
        submitted.add_done_callback(lambda _: self._leave(owner))
        future = asyncio.wrap_future(submitted)
        # Or asyncio logs the error of a cancelled request, which has no reader.
        future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        while not (await asyncio.wait({future}, timeout=LOOK_S))[0]:
            if job.is_over():
                task = asyncio.create_task(_end(job, future))
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
                raise _cancelled(self.lane)
        return future.result()

    async def _take_turn(self, owner: Owner) -> None:
        """Wait until a thread is free for the owner, and take it. Raises `Refusal`."""
        place = self._enter(owner)
        if place is None:
            return
        try:
            async with asyncio.timeout(self.lane.wait_s):
                await place
        except BaseException as error:
            if not self._remove(owner, place):
                # Its turn came in the same moment.
                self._leave(owner)
            if isinstance(error, TimeoutError):
                text = f"The request waited for {self.lane.wait_s:g} s behind others"
                raise Refusal(503, "busy", text) from None
            raise

    def _enter(self, owner: Owner) -> asyncio.Future[None] | None:
        """Take a thread and return None, or return a place in the owner's line."""
        with self._lock:
            if owner not in self._lines and self._may_start(owner):
                self._hold(owner)
                return None
            if len(self._lines.get(owner, ())) >= self.lane.waiting:
                text = f"{self.lane.waiting} of your requests wait already: send fewer at once"
                raise Refusal(429, "too_many_requests", text)
            if self._waiting[owner.share] >= self.lane.waiting_of_share:
                raise Refusal(503, "busy", "Too many requests wait")
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._lines.setdefault(owner, deque()).append(place)
            self._waiting[owner.share] += 1
            return place

    def _may_start(self, owner: Owner) -> bool:
        return self._free > self._held[owner.share]

    def _hold(self, owner: Owner, count: int = 1) -> None:
        self._free -= count
        self._held[owner.share] += count

    def _leave(self, owner: Owner) -> None:
        """Give a thread back, and start who waits."""
        with self._lock:
            self._hold(owner, -1)
            while (following := next(filter(self._may_start, self._lines), None)) is not None:
                place = self._lines[following][0]
                self._remove(following, place)
                if following in self._lines:
                    # Behind all others.
                    self._lines[following] = self._lines.pop(following)
                # A closed event loop has nobody who waits.
                with suppress(RuntimeError):
                    place.get_loop().call_soon_threadsafe(_give, place)
                    self._hold(following)

    def _remove(self, owner: Owner, place: asyncio.Future[None]) -> bool:
        """Take a place out of a line; return False if its turn has come."""
        with self._lock:
            line = self._lines.get(owner, deque())
            if place not in line:
                return False
            line.remove(place)
            if not line:
                del self._lines[owner]
            self._waiting[owner.share] -= 1
            return True


def _give(place: asyncio.Future[None]) -> None:
    if not place.done():
        place.set_result(None)


async def _end(job: Job, future: asyncio.Future[Any]) -> None:
    """Cancel a job until its thread is free."""
    loop = asyncio.get_running_loop()
    while not future.done():
        # A database may be asked over the network.
        await loop.run_in_executor(None, job.cancel)
        await asyncio.wait({future}, timeout=_REPEAT_S)


def _cancelled(lane: Lane) -> Refusal:
    text = (
        f"The request was cancelled at its time limit ({lane.cpu_s:g} s of processor time, "
        f"{lane.wall_s:g} s altogether). It may or may not have had an effect: look first, then "
        f"request less at once"
    )
    return Refusal(503, "time_limit", text)
