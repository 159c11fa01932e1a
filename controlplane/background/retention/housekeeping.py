"""The periodic housekeeping: every kind in turn, an error in one does not affect the others."""

import logging
from datetime import datetime

from controlplane.background.retention.kinds import KINDS

logger = logging.getLogger(__name__)


def prune_all(now: datetime) -> list[str]:
    """Delete what is kept no longer; return the names of the kinds that failed."""
    failed = []
    for kind in KINDS:
        try:
            kind.prune(now)
        except Exception:
            # The next pass retries.
            logger.exception("Housekeeping of %s failed", kind.name)
            failed.append(kind.name)
    return failed
