"""Which files a source has: a thread lists them, counts the rows of new ones and indexes them."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from controlplane.wire.results.database import FAILURES
from controlplane.wire.sources.files import FileSource
from workers.pipeline.sources.files.index import FileIndex, IndexedFile
from workers.pipeline.sources.files.scan import BadFile, scan
from workers.pipeline.sources.files.store import FileStore, ListedFile, StoreUnavailable
from workers.pipeline.sources.plan import SourceState
from workers.pipeline.sources.watcher import PlaceWatcher

# Files that are indexed together, before the planner hears of them.
_TOGETHER: Final = 50
# So long a file must be missing before its name is forgotten: a directory may be away for a time.
_GONE_S: Final = 86_400.0
# So often in a row a file must be unreadable before its entry is a fault, about a minute.
_ATTEMPTS: Final = 60


class FileWatcher(PlaceWatcher):
    """Follows the files of a source; the index forgets missing ones whose rows are committed."""

    period_s: ClassVar[float] = 1.0
    failures: ClassVar[tuple[type[Exception], ...]] = (StoreUnavailable, *FAILURES)

    def __init__(
        self, source: FileSource, cluster: str, stream: int, topics: tuple[str, ...] = ()
    ) -> None:
        super().__init__(f"files of {source.url}", topics)
        self._source, self._index = source, FileIndex(source, cluster, stream)
        self._is_loaded = False
        self._known: dict[str, ListedFile] = {}
        self._changed: set[str] = set()
        # When files were first seen as they are, and since when others are missing.
        self._seen: dict[ListedFile, float] = {}
        self._missing: dict[str, float] = {}
        self._failures: Counter[ListedFile] = Counter()
        self.start()

    def _end(self) -> None:
        self._index.close()

    def _load(self) -> None:
        """Read the index, once."""
        if not self._is_loaded:
            self._index.forget_others()
            self._note(self._index.files())
            self._is_loaded = True

    def _note(self, files: Sequence[IndexedFile]) -> None:
        """Keep what the index has, and let the planner know how far it reaches."""
        for file in files:
            self._known[file.name] = file.file
            if file.fault:
                self._changed.add(file.name)
        ends = dict.fromkeys(range(self._source.partitions), (0, 0))
        ends |= {part: (0, end) for part, end in self._index.ends().items()}
        self._state = SourceState(ends, dict.fromkeys(ends, 0))

    def _refresh(self) -> None:
        self._load()
        store = FileStore(self._source)
        store.check()
        listed = store.listed()
        new = [file for file in listed if self._is_new(file) and self._is_settled(file)]
        new.sort(key=lambda file: (file.modified_ns, file.name))
        for first in range(0, len(new), _TOGETHER):
            if self._stopped.is_set():
                return
            self._add(store, new[first : first + _TOGETHER])
        self._state = replace(self._state, error="")
        self._failures.clear()
        self._forget({file.name for file in listed})
        self._seen = {file: self._seen[file] for file in listed if file in self._seen}

    def _add(self, store: FileStore, files: Sequence[ListedFile]) -> None:
        """Index files, in their order up to one that cannot be read now."""
        entries = list[IndexedFile]()
        try:
            for file in files:
                entries.append(self._entry(store, file))
        finally:
            self._index.append(entries)
            self._note(entries)

    def _is_new(self, file: ListedFile) -> bool:
        """Return whether a file is unknown, or has changed for the first time."""
        return self._known.get(file.name) != file and file.name not in self._changed

    def _is_settled(self, file: ListedFile) -> bool:
        settle_s, now = self._source.settle_s, time.monotonic()
        age_s = time.time() - file.modified_ns / 1e9
        return age_s >= settle_s or now - self._seen.setdefault(file, now) >= settle_s

    def _entry(self, store: FileStore, file: ListedFile) -> IndexedFile:
        known = self._known.get(file.name)
        if known is not None:
            why = f"has changed after it was found ({known.size:,} bytes, now {file.size:,})"
            return _faulty(file, f"{why}: write a new file instead")
        try:
            rows, places, names = scan(store, file, self._source)
        except BadFile as error:
            return _faulty(file, str(error))
        except StoreUnavailable as error:
            self._failures[file] += 1
            if self._failures[file] < _ATTEMPTS:
                raise
            return _faulty(file, f"cannot be read: {error.__cause__}"[:300])
        return IndexedFile(0, 0, rows, *file, places, names)

    def _forget(self, present: set[str]) -> None:
        now, missing = time.monotonic(), self._known.keys() - present
        self._missing = {name: self._missing.get(name, now) for name in missing}
        forgotten: Sequence[str] = [
            n for n, since in self._missing.items() if now - since > _GONE_S
        ]
        if forgotten and self._offsets:
            self._index.forget(forgotten, self._offsets)
            # What is still needed is looked at again after as long a time.
            self._missing |= dict.fromkeys(forgotten, now)
            kept = {file.name for file in self._index.files()}
            self._known = {name: file for name, file in self._known.items() if name in kept}
            self._changed &= kept


def _faulty(file: ListedFile, why: str) -> IndexedFile:
    return IndexedFile(0, 0, 1, *file, [], [], why)


WATCHER: Final = FileWatcher
