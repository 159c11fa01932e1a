"""Snapshots of clusters; proposals with equal snapshots share a row."""

import hashlib
import json
import zlib

from django.db import models

from controlplane.plans.snapshot import ClusterSnapshot

# A twentieth larger than at level 6, in a third of its time.
LEVEL = 4


class Snapshot(models.Model):
    """A cluster as it was, as canonical JSON (controlplane.plans.snapshot), compressed.

    digest is the sha256 of the JSON, in hex: two proposals on equal clusters share one row. size
    is the length of the JSON in bytes.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    data = models.BinaryField()
    size = models.PositiveBigIntegerField()
    taken_at = models.DateTimeField()

    _value: ClusterSnapshot | None = None

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
        """Return the snapshot, which callers must not change: this row parses it once."""
        if self._value is None:
            stored = json.loads(zlib.decompress(bytes(self.data)))
            self._value = ClusterSnapshot.from_json(stored)
        return self._value

    def remember(self, value: ClusterSnapshot) -> None:
        """Keep the value from which the data was made, so that it is not parsed again."""
        self._value = value
