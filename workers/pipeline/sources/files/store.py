"""The directory or object store of a source: which files it has, and opening one of them."""

import io
import os
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.network.destinations import NotAllowed, check_folder
from controlplane.wire.network.object_stores import object_store
from controlplane.wire.network.secrets import NoSecret, SecretOf
from controlplane.wire.sources.files import STORE_SECRET, FileSource

# Files that a directory may have, also those that are read: more are not listed.
MOST_FILES: Final = 20_000


class StoreUnavailable(SourceUnavailable):
    """The directory or store does not respond, or the list of the site does not have it."""


class ListedFile(NamedTuple):
    """A file below the directory; `name`: its path there; `modified_ns`: since the epoch."""

    name: str
    size: int
    modified_ns: int


class FileStore:
    """The files of a source. Raises `StoreUnavailable` if it does not answer or is refused."""

    def __init__(self, source: FileSource) -> None:
        parts = urlsplit(source.url)
        self._is_local, self._pattern = parts.scheme == "file", source.pattern
        path = unquote(parts.path).rstrip("/")
        self._url, self.path = source.url, f"{parts.netloc}{path}"
        try:
            self._files = fs.LocalFileSystem() if self._is_local else object_store(
                SecretOf.TOPICS, source.secrets.get(STORE_SECRET, ""), source.endpoint,
                source.region,
            )  # fmt: skip
        except (NoSecret, OSError, pa.ArrowException) as error:
            raise StoreUnavailable(str(error)) from error
        if self._is_local:
            self.path = os.path.realpath(path)

    def check(self) -> None:
        """Raise `StoreUnavailable` unless the site lists the directory, links resolved."""
        try:
            check_folder(self._url)
            if self._is_local:
                check_folder(f"file://{quote(self.path)}")
        except NotAllowed as refusal:
            raise StoreUnavailable(str(refusal)) from refusal

    def listed(self) -> list[ListedFile]:
        """Return the files that the pattern selects.

        Names that begin with _ or a dot are those of files that are being written.
        """
        try:
            selector = fs.FileSelector(self.path, recursive=True)
            infos = self._files.get_file_info(selector)
        except (OSError, pa.ArrowException) as error:
            raise StoreUnavailable(f"the directory cannot be listed: {error}"[:300]) from error
        result = [
            _listed(info, name)
            for info in infos
            if info.type is fs.FileType.File and self._is_selected(name := self._name(info))
        ]
        if len(result) > MOST_FILES:
            text = f"has {len(result):,} files, more than {MOST_FILES:,}: move read files away"
            raise StoreUnavailable(f"the directory {text}")
        return result

    def _name(self, info: fs.FileInfo) -> str:
        return info.path[len(self.path) :].lstrip("/")

    def _is_selected(self, name: str) -> bool:
        is_hidden = any(part.startswith(("_", ".")) for part in name.split("/"))
        return not is_hidden and fnmatchcase(name, self._pattern)

    def find(self, name: str) -> ListedFile | None:
        """Return a file, None if it does not exist."""
        try:
            info = self._files.get_file_info(f"{self.path}/{name}")
        except (OSError, pa.ArrowException) as error:
            raise StoreUnavailable(f"{name} cannot be found: {error}"[:300]) from error
        return _listed(info, name) if info.type is fs.FileType.File else None

    def open(self, name: str) -> Any:
        """Return a file as a `FileStream`. Raises `OSError` for a link to another place."""
        path = f"{self.path}/{name}"
        if self._is_local and not os.path.realpath(path).startswith(f"{self.path}/"):
            raise PermissionError(f"{name} is a link out of the directory")
        try:
            return FileStream(name, self._files.open_input_file(path))
        except OSError as error:
            raise StoreUnavailable(f"{name} cannot be read: {error}"[:300]) from error


class FileStream(io.RawIOBase):
    """A file of a store. Raises `StoreUnavailable` if the store does not give its bytes.

    So an `OSError` of a decoder is one of the contents.
    """

    def __init__(self, name: str, stream: Any) -> None:
        self._name, self._stream = name, stream

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes into a buffer, and return how many."""
        try:
            return int(self._stream.readinto(buffer))
        except OSError as error:
            raise StoreUnavailable(f"{self._name} cannot be read: {error}"[:300]) from error

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Continue at another byte, and return it."""
        return int(self._stream.seek(offset, whence))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        super().close()


def _listed(info: fs.FileInfo, name: str) -> ListedFile:
    return ListedFile(name, info.size or 0, info.mtime_ns or 0)


def modified_ms(modified_ns: int) -> int:
    """Return a time of modification in milliseconds."""
    return max(0, modified_ns // 1_000_000)
