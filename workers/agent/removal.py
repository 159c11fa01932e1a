"""Removal of the checkpoints of deleted clusters; afterwards their slugs are free."""

import logging
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from redis.exceptions import RedisError

from workers.agent.driver import Site, end_strays
from workers.pipeline.checkpoints.files import AlreadyRunning, exclusive_lock

logger = logging.getLogger("weir.agent")

# The interval of attempts at checkpoints that cannot be removed (s).
_RETRY_S: Final = 60.0


class Removal:
    """Removes the checkpoints of deleted clusters, and reports each that is removed.

    `deleted`: returns the slugs of deleted clusters; `confirm`: called with a slug whose
    checkpoints are removed.
    """

    def __init__(
        self, site: Site, deleted: Callable[[], Iterable[str]], confirm: Callable[[str], None]
    ) -> None:
        self._site = site
        self.read_deleted = deleted
        self._confirm = confirm
        self._due_at: dict[str, float] = {}

    def step(self, slugs: Iterable[str], now: float) -> None:
        """Remove the checkpoints of deleted clusters that no keeper manages."""
        for slug in slugs:
            if now < self._due_at.get(slug, now):
                continue
            try:
                remove_checkpoints(self._site, slug)
                self._confirm(slug)
            except (OSError, AlreadyRunning, RedisError) as error:
                logger.warning("the checkpoints of %s cannot be removed: %s", slug, error)
                self._due_at[slug] = now + _RETRY_S
            else:
                self._due_at.pop(slug, None)


def remove_checkpoints(site: Site, slug: str) -> None:
    """End the processes on the checkpoints of a cluster and remove these, of every log.

    Raises `AlreadyRunning` if a process survives or changes a checkpoint, and `OSError`.
    """
    if not end_strays(site, slug):
        raise AlreadyRunning(f"processes of {slug} survive SIGKILL")
    for path in checkpoints_of(site, slug):
        with exclusive_lock(path):
            for part in sorted(path.parent.glob(f"{path.name}.*")):
                _remove(part)
            _remove(path)


def checkpoints_of(site: Site, slug: str) -> list[Path]:
    """Return the checkpoints of a cluster: of the site's log, and of each log that it had."""
    own = site.checkpoint(slug)
    if not own.parent.is_dir():
        return []
    # Names before the dot: a checkpoint that was set aside has a suffix.
    names = {path.name.partition(".")[0] for path in own.parent.iterdir()}
    mark = re.compile(rf"{re.escape(own.name)}(-[0-9a-f]{{8}})?")
    return sorted(own.with_name(name) for name in names if mark.fullmatch(name))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
