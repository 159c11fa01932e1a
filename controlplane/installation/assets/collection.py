"""Collection of static files: copies with a hash in their names, compressed once.

A file's name changes with its content, so browsers keep it for good (`immutable`); brotli and gzip
variants stand beside it. Django's and ServeStatic's storages do the work; this module decides when.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from servestatic.compress import Compressor
from servestatic.storage import CompressedManifestStaticFilesStorage

from controlplane.installation.assets.folders import MANIFEST, has_manifest

_MARK: Final = ".sources"
# What no page loads: extensions and other versions of htmx (the extensions import modules that
# their package does not have), a second reader of the API document.
_UNUSED: Final = ["hx-*.js", "htm*-4*.js", "htmx-2.js", "redoc*"]
# A page that was loaded before an update may still ask for files of its version.
_KEEP_S: Final = 7 * 86_400


class ManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Storage with hashed names, also in the imports of JavaScript modules."""

    support_js_module_import_aggregation = True

    def create_compressor(self, **kwargs: Any) -> Compressor:
        """Return the compressor, which keeps what is compressed already."""
        return _KeepingCompressor(**kwargs)


class _KeepingCompressor(Compressor):  # type: ignore[misc]
    """Compressor of files with hashed names, whose variants stay valid and take seconds."""

    def compress(self, path: str | os.PathLike[str]) -> list[str]:
        name = os.fspath(path)
        variants = [f"{name}{suffix}" for suffix in (".br", ".gz")]
        known = [variant for variant in variants if Path(variant).is_file()]
        return known or super().compress(path)


def collect_static() -> Path:
    """Collect the static files unless these sources are collected already; return their folder.

    Processes that start together wait for the first of them. Raises OSError if the folder cannot
    be written; what an image has collected needs no write.
    """
    root = Path(settings.STATIC_ROOT)
    if not os.access(root, os.W_OK) and _text(root / _MARK) == _digest_of_sources():
        return root
    root.mkdir(parents=True, exist_ok=True)
    with _lock(root / ".lock"):
        sources = _digest_of_sources()
        mark = root / _MARK
        if not has_manifest(root) or _text(mark) != sources:
            call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=_UNUSED)
            _delete_old(root)
            mark.write_text(sources)
            _forget_manifest()
    return root


def _digest_of_sources() -> str:
    """Return a digest over names and contents of all files that the finders know."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list(None):
            prefix = getattr(storage, "prefix", None)
            digest.update(f"{prefix}/{path}\0".encode())
            digest.update(hashlib.sha256(Path(storage.path(path)).read_bytes()).digest())
    return digest.hexdigest()


def _delete_old(root: Path) -> None:
    """Delete the files of earlier versions, a week after they were written."""
    manifest = json.loads((root / MANIFEST).read_text())["paths"]
    needed = {*manifest, *manifest.values(), MANIFEST, _MARK, ".lock"}
    oldest = time.time() - _KEEP_S
    for path in root.rglob("*"):
        if not path.is_file():
            continue
        name = path.relative_to(root).as_posix()
        plain = name.removesuffix(".br").removesuffix(".gz")
        if plain not in needed and path.stat().st_mtime < oldest:
            path.unlink()


def _forget_manifest() -> None:
    """Let this process read the new manifest, if it has read the old one."""
    storage: Any = staticfiles_storage
    storage.hashed_files, storage.manifest_hash = storage.load_manifest()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("a") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(opened, fcntl.LOCK_UN)


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""
