"""How the processes of a test run share the tests."""

from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.support.nightly import NIGHTLY

ROOT = Path(__file__).parents[2]
_END_TO_END = "tests/end_to_end/"
# What a file says that starts something which all of its tests use.
_SHARED = ("mark.spark", "mark.browser", 'scope="module"')
# The tests of a server that is started for the whole run, by their parameter.
_POSTGRES = "[postgresql"
# What an end-to-end file says that starts a Weir of its own.
_OWN_WEIR = ("RunningWeir(", "running_harbour(")


def starts_weir(path: str) -> bool:
    """Return whether the tests of a file use a whole Weir."""
    return path.startswith(_END_TO_END)


@cache
def shares_by_file(path: str) -> bool:
    """Return whether the tests of a file share a Spark, a browser, a whole Weir, or a fixture."""
    return starts_weir(path) or any(word in _text(path) for word in _SHARED)


@cache
def scope_of(nodeid: str) -> str:
    """Return the name of the tests that one process must run, of which this test is one.

    Files of end-to-end tests that start no Weir of their own share one Weir, and by day the tests
    of PostgreSQL one server: by night they are half of their part.
    """
    path = nodeid.partition("::")[0]
    if _POSTGRES in nodeid and not NIGHTLY:
        return _POSTGRES
    if starts_weir(path) and not any(word in _text(path) for word in _OWN_WEIR):
        return _END_TO_END
    return path if shares_by_file(path) else nodeid


@cache
def runs_spark(scope: str) -> bool:
    """Return whether the tests of a scope, other than those of the shared Weir, start Spark."""
    path = scope.partition("::")[0]
    return path not in (_END_TO_END, _POSTGRES) and _SHARED[0] in _text(path)


def next_scope(waiting: Collection[str], busy: Iterable[str]) -> str:
    """Return the scope that a process starts next: the first one, but Spark in one process only.

    `waiting` is not empty, and in the order in which the tests were collected; `busy`: the scopes
    that other processes have. A Weir waits for its own processes most of the time, so one other
    Spark runs beside the shared Weir; with a third, all wait for the processor. If nothing else
    waits, Spark runs in two processes.
    """
    first = next(iter(waiting))
    if not any(runs_spark(scope) for scope in busy):
        return first
    return next((scope for scope in waiting if not runs_spark(scope)), first)


@cache
def _text(path: str) -> str:
    return (ROOT / path).read_text()


class Sharing(LoadScopeScheduling):  # type: ignore[misc] # xdist ships no types
    """Whole files where their tests share what is slow to start, all others one by one.

    (xdist's own `loadgroup` writes the group into the id of a test, which pytest 9.2 forbids.)
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def schedule(self) -> None:
        """Give each process two tests or the order to end: it runs a test when the next is known.

        xdist gives a process that replaces a crashed one a single scope. If that has one test, the
        process waits for ever, and the run with it.
        """
        super().schedule()
        for node in self.nodes:
            if self._pending_of(self.assigned_work[node]) < 2:
                self._reschedule(node)

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Mark a test of a process as run, and forget scopes of which all tests were run.

        xdist passes over all that it knows after each test: of 8,000 tests that took 10 s.
        """
        scopes = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(scopes[scope].values()):
            del scopes[scope]

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = (scopes for other, scopes in self.assigned_work.items() if other is not node)
        busy = [scope for scopes in others for scope in scopes]
        self.workqueue.move_to_end(next_scope(self.workqueue, busy), last=False)
        super()._assign_work_unit(node)
