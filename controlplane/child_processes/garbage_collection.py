"""Python's garbage collector, which searches many new objects in vain."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable the collector in a block that makes many objects without reference cycles.

    It saves a third of the time of a snapshot and of the rows of results.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
