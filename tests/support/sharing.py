"""How the processes of a test run share the tests."""

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
# What a file says that starts something which all of its tests use.
_SHARED = ("mark.spark", "mark.browser")


def starts_weir(path: str) -> bool:
    """Return whether the tests of a file share a whole Weir."""
    return path.startswith("tests/end_to_end/")


@cache
def shares_by_file(path: str) -> bool:
    """Return whether the tests of a file share a Spark, a browser, or a whole Weir."""
    text = (ROOT / path).read_text()
    return starts_weir(path) or any(word in text for word in _SHARED)


class Sharing(LoadScopeScheduling):  # type: ignore[misc] # xdist ships no types
    """Whole files where their tests share what is slow to start, all others one by one.

    (xdist's own `loadgroup` writes the group into the id of a test, which pytest 9.2 forbids.)
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if shares_by_file(path) else nodeid
