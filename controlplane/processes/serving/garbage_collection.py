"""Python's garbage collector in a process that answers requests."""

import gc
from typing import Final

# A response allocates thousands of objects without cycles, so the collector runs less often.
_THRESHOLDS: Final = (20_000, 20, 20)


def tune_collector() -> None:
    """Exclude all present objects from collections, and make collections rare.

    What is imported stays for good: a full collection would stop an answer for a tenth of a second
    to look at two hundred thousand objects that are all in use.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
