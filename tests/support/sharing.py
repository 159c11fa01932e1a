"""How the processes of a test run share the tests."""

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
_END_TO_END = "tests/end_to_end/"
# What a file says that starts something which all of its tests use.
_SHARED = ("mark.spark", "mark.browser")


def starts_weir(path: str) -> bool:
    """Return whether the tests of a file use a whole Weir."""
    return path.startswith(_END_TO_END)


@cache
def shares_by_file(path: str) -> bool:
    """Return whether the tests of a file share a Spark, a browser, or a whole Weir."""
    return starts_weir(path) or any(word in _text(path) for word in _SHARED)


@cache
def scope_of(nodeid: str) -> str:
    """Return the name of the tests that one process must run, of which this test is one.

    Files of end-to-end tests that start no Weir of their own share one Weir.
    """
    path = nodeid.partition("::")[0]
    if starts_weir(path) and "RunningWeir(" not in _text(path):
        return _END_TO_END
    return path if shares_by_file(path) else nodeid


def _text(path: str) -> str:
    return (ROOT / path).read_text()


class Sharing(LoadScopeScheduling):  # type: ignore[misc] # xdist ships no types
    """Whole files where their tests share what is slow to start, all others one by one.

    (xdist's own `loadgroup` writes the group into the id of a test, which pytest 9.2 forbids.)
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
