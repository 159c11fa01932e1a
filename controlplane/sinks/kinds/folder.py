"""A directory or an object store in the list of the site, and files of Weir in it.

These are in the folder `_weir`: readers take no notice of names that begin with an underscore.
"""

import json
import re
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from controlplane.errors import Invalid
from controlplane.sinks.destination import DestinationAway
from controlplane.sinks.kinds.settings import FileSettings, FolderSettings
from controlplane.wire.network import destinations, object_stores
from controlplane.wire.network.destinations import NotAllowed, check_folder
from controlplane.wire.network.secrets import SecretOf

_OWN: Final = "_weir"
# What errors of Delta have for terminals.
_DECORATION: Final = re.compile(r"(\x1b\[\d+m|\s|↳)+")


def check_destination(settings: FolderSettings) -> None:
    """Raise `Invalid` unless the site lists the directory, or one around it, and the endpoint."""
    try:
        check_folder(settings.url)
    except NotAllowed as refusal:
        raise Invalid({"settings.url": [str(refusal)]}) from None
    check_endpoint(settings)


def check_endpoint(settings: FileSettings) -> None:
    """Raise `Invalid` unless the list of the site has the endpoint."""
    try:
        destinations.check_endpoint(settings.endpoint)
    except NotAllowed as refusal:
        raise Invalid({"settings.endpoint": [str(refusal)]}) from None


def access_keys(settings: FileSettings) -> tuple[str, str] | None:
    """Return access key and secret key of an object store, None for the machine's identity.

    Raises `NotAllowed` for an endpoint that the list of the site has not, and `NoSecret`.
    """
    destinations.check_endpoint(settings.endpoint)
    return object_stores.access_keys(SecretOf.SINKS, settings.secret)


def away(settings: FileSettings, error: BaseException) -> DestinationAway:
    """Return the exception for an error of a client of files, in one line."""
    text = _DECORATION.sub(" ", str(error)).strip()
    if isinstance(error, NotAllowed) or settings.secret or not settings.is_remote:
        return DestinationAway(text)
    hint = "the sink names no secret, so it has the identity of the machine"
    return DestinationAway(f"{text[:200]} ({hint})")


def _file_system(settings: FolderSettings) -> fs.FileSystem:
    if not settings.is_remote:
        return fs.LocalFileSystem()
    given = settings.secret, settings.endpoint, settings.region
    return object_stores.object_store(SecretOf.SINKS, *given)


class SinkFolder:
    """The directory of a sink; names are relative to it, `own` names are those of Weir."""

    def __init__(self, settings: FolderSettings) -> None:
        parts = urlsplit(settings.url)
        self.path = f"{parts.netloc}{unquote(parts.path)}".rstrip("/")
        try:
            check_folder(settings.url)
            self.files = _file_system(settings)
            self.files.create_dir(f"{self.path}/{_OWN}", recursive=True)
        except (NotAllowed, OSError, pa.ArrowException) as error:
            raise away(settings, error) from error

    def own(self, name: str) -> str:
        """Return the path of a file of Weir."""
        return f"{self.path}/{_OWN}/{name}"

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of a file of Weir, {} if there is none."""
        if not self.exists(self.own(name)):
            return {}
        with self.files.open_input_stream(self.own(name)) as stream:
            state: dict[str, Any] = json.loads(stream.read())
        return state

    def replace(self, name: str, state: dict[str, Any]) -> None:
        """Replace a file of Weir atomically."""
        path = self.own(name)
        with self.files.open_output_stream(f"{path}.new") as stream:
            stream.write(json.dumps(state).encode())
        self.files.move(f"{path}.new", path)

    def move_in(self, temporary: str, path: str) -> None:
        """Move a finished file to its folder."""
        self.files.create_dir(str(PurePosixPath(path).parent), recursive=True)
        self.files.move(temporary, path)

    def exists(self, path: str) -> bool:
        """Return whether there is a file."""
        return self.files.get_file_info(path).type is not fs.FileType.NotFound

    def delete(self, path: str) -> None:
        """Delete a file if it exists."""
        if self.exists(path):
            self.files.delete_file(path)
