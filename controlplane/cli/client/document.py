"""The OpenAPI document that commands are made of: of the Weir at --url, else of this installation.

It is kept in the user's cache: that of this installation until a file of it changes, that of a Weir
elsewhere for an hour.
"""

import hashlib
import json
import os
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_FRESH_S: Final = 3600
_CODE: Final = Path(__file__).parents[2]
Document = Mapping[str, Any]


def document_for(given: Namespace, set_up: Callable[[], None]) -> Document:
    """Return the document for a call; `set_up` prepares Django. Raises `Refused`."""
    if given.url:
        return _kept(given.url, time.time() - _FRESH_S, lambda: _fetched(given))
    changed_at = max(file.stat().st_mtime for file in _CODE.rglob("*.py"))
    return _kept(str(_CODE), changed_at, lambda: _made(set_up))


def _fetched(given: Namespace) -> Document:
    # --help and completion from the cache need no client.
    from controlplane.cli.client.connection import api_of  # noqa: PLC0415

    document: Document = api_of(given).get("/openapi.json")
    return document


def _made(set_up: Callable[[], None]) -> Document:
    set_up()
    # The API needs Django, which --help does without where the document is in the cache.
    from controlplane.api.application import api  # noqa: PLC0415

    return api.get_openapi_schema(path_prefix="/api/v1/")


def _kept(source: str, since: float, make: Callable[[], Document]) -> Document:
    """Return the document of a source that was kept after a time, else a new one, and keep it."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"
    file = folder / f"{hashlib.blake2b(source.encode(), digest_size=16).hexdigest()}.json"
    with suppress(OSError, ValueError):
        if file.stat().st_mtime > since:
            kept: Document = json.loads(file.read_text(encoding="utf-8"))
            return kept
    text = json.dumps(make(), default=str)
    # A cache that cannot be written costs time only.
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    fresh: Document = json.loads(text)
    return fresh
