"""Work after a commit whose failure is logged, as the rows are saved.

`transaction.on_commit(..., robust=True)` promises the same, but logs a failure by the callable's
`__qualname__`, which a partial lacks, and then raises at the caller after all.
"""

import logging
from collections.abc import Callable

from django.db import transaction

logger = logging.getLogger(__name__)


def after_commit(what: str, work: Callable[[], object]) -> None:
    """Run `work` once the transaction is committed; a failure is logged as `what`, not raised."""

    def guarded() -> None:
        try:
            work()
        except Exception:
            # Whatever it is: the caller's own work is done, and the beat's tasks repair the rest.
            logger.exception("Saved, but could not %s", what)

    transaction.on_commit(guarded)
