"""Snapshots of clusters; proposals with equal snapshots share a row."""

import hashlib
import json
import zlib
from threading import Lock

from django.db import models

from controlplane.plans.snapshot import ClusterSnapshot

# 5 % larger than at level 6, in a third of the time.
LEVEL = 4
# Parsed snapshots that a process caches: one of 100,000 queries takes most of a second to parse.
KEPT_VALUES = 2
_recent: dict[str, ClusterSnapshot] = {}
_lock = Lock()


class Snapshot(models.Model):
    """A cluster as it was, as canonical JSON (controlplane.plans.snapshot), compressed.

    `digest`: the sha256 of the JSON in hex; proposals with equal snapshots share a row. `size`: the
    length of the JSON in bytes.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    data = models.BinaryField()
    size = models.PositiveBigIntegerField()
    taken_at = models.DateTimeField()

    class Meta:
        ordering = ["-taken_at"]

    def __str__(self) -> str:
        return self.digest[:12]

    @classmethod
    def packed(cls, text: str) -> bytes:
        """Return compressed canonical JSON."""
        return zlib.compress(text.encode(), LEVEL)

    @property
    def is_whole(self) -> bool:
        """Return True if the data matches the digest."""
        return hashlib.sha256(zlib.decompress(bytes(self.data))).hexdigest() == self.digest

    def value(self) -> ClusterSnapshot:
        """Return the cached snapshot, which callers must not change."""
        value = _recent.get(self.digest)
        if value is None:
            stored = json.loads(zlib.decompress(bytes(self.data)))
            value = ClusterSnapshot.from_json(stored)
            self.remember(value)
        return value

    def remember(self, value: ClusterSnapshot) -> None:
        """Cache the value of the data."""
        with _lock:
            _recent.pop(self.digest, None)
            _recent[self.digest] = value
            while len(_recent) > KEPT_VALUES:
                del _recent[next(iter(_recent))]
