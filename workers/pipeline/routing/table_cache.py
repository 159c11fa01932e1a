"""Compiled routing tables, as each Python worker keeps them.

Spark re-uses its Python workers, so a table is read from Redis once per version and process;
the next version costs only its delta.
"""

from threading import Lock
from typing import Final

import redis

from controlplane.wire.errors import RoutingMissing
from controlplane.wire.foreign.entries import EntryLocation, skip
from controlplane.wire.routing.publication import latest_version, read_table
from controlplane.wire.routing.state_transfer import TaskTransfer, task_transfers, transition_table
from workers.pipeline.routing.compiled_table import CompiledTable

# The present table and the one before, and the one that leads from it; and one to spare.
_KEPT_TABLES: Final = 4


class TableCache:
    """The compiled tables of one cluster that this process used last."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self._client = client
        self._cluster = cluster
        # By the version before, in a batch that leads from it, and the version.
        self._known: dict[tuple[int | None, int], CompiledTable] = {}
        self._lock = Lock()

    def of_version(self, version: int) -> CompiledTable:
        """Return the table at `version`, built from the newest one held before it."""
        with self._lock:
            return self._of_version(version)

    def newest_version(self, before: int) -> int:
        """Return the newest routing version, the one before if the newest cannot be read.

        A table without a part would give other results; the control plane writes it again.
        """
        version = max(latest_version(self._client, self._cluster) or 0, before)
        try:
            if version > before:
                self.of_version(version)
        except RoutingMissing as error:
            skip(self._client, self._cluster, EntryLocation.ROUTING, error)
            return before
        return version

    def of_batch(self, export_version: int | None, version: int) -> CompiledTable:
        """Return the table of a batch, in which tasks export their state or do not."""
        return (
            self.of_version(version)
            if export_version is None
            else self.transition_table(export_version, version)
        )

    def transition_table(self, before: int, version: int) -> CompiledTable:
        """Return the table of the batch that leads from one version to another."""
        with self._lock:
            if (before, version) not in self._known:
                old, new = self._of_version(before).table, self._of_version(version).table
                self._keep((before, version), CompiledTable(transition_table(old, new)))
            return self._known[before, version]

    def task_transfers(self, before: int, version: int) -> list[TaskTransfer]:
        """Return which tasks export their state between two versions."""
        with self._lock:
            return list(
                task_transfers(self._of_version(before).table, self._of_version(version).table)
            )

    def _of_version(self, version: int) -> CompiledTable:
        if (None, version) not in self._known:
            older = [known for before, known in self._known if before is None and known < version]
            base = self._known[None, max(older)].table if older else None
            table = read_table(self._client, self._cluster, version, base)
            self._keep((None, version), CompiledTable(table))
        return self._known[None, version]

    def _keep(self, key: tuple[int | None, int], table: CompiledTable) -> None:
        self._known[key] = table
        while len(self._known) > _KEPT_TABLES:
            del self._known[next(iter(self._known))]
