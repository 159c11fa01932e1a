"""The ASGI application that serves static files, and the finder of installed ones.

The repository holds no third-party file: they are found where they are installed.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from wsgiref.headers import Headers

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder, find
from django.core.files.storage import FileSystemStorage
from servestatic import ServeStaticASGI

from controlplane.installation.assets.collection import collect_static
from controlplane.installation.assets.plotly_bundle import served_bundle
from controlplane.installation.assets.typeface import typeface_files

PLOTLY = "vendor/plotly.min.js"
_FOLDER: Final = "vendor"
# Of names without a hash, which no page of Weir asks for.
MAX_AGE_S = 60


def installed_files() -> Mapping[str, Path]:
    """Return the files by their names under `vendor/`, which do not depend on their versions."""
    return {PLOTLY.rpartition("/")[2]: served_bundle(), **typeface_files()}


class InstalledStorage(FileSystemStorage):
    """The files where they are installed."""

    prefix = _FOLDER

    def path(self, name: str) -> str:
        """Return the path of a file."""
        return str(installed_files()[name])


class InstalledFinder(BaseFinder):
    """Finds the installed files, and no others."""

    def __init__(self) -> None:
        self.storage = InstalledStorage(location=served_bundle().parent)

    def check(self, **kwargs: Any) -> list[Any]:
        """Return no system checks; `served_bundle` raises an error for a missing package."""
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        """Return where a file under `vendor/` stands; nothing for any other path."""
        folder, _, name = path.partition("/")
        file = installed_files().get(name) if folder == _FOLDER else None
        paths = [] if file is None else [str(file)]
        if find_all or kwargs.get("all"):
            return paths
        # Django takes any other empty answer for a hit.
        return paths[0] if paths else []

    def list(
        self, ignore_patterns: Iterable[str] | None
    ) -> Iterator[tuple[str, FileSystemStorage]]:
        """Yield the names of the files."""
        for name in installed_files():
            yield name, self.storage


class SourceFiles(ServeStaticASGI):  # type: ignore[misc]
    """Serves what Django's finders find, for development: a file is searched at each request."""

    def candidate_paths_for_url(self, url: str) -> Iterator[str]:
        """Yield the file of a static URL."""
        name = url.removeprefix(settings.STATIC_URL)
        path = find(name) if name != url else None
        if path:
            yield path


def no_sniffing(headers: Headers, path: str, url: str) -> None:
    """Keep browsers to the declared content type."""
    headers["X-Content-Type-Options"] = "nosniff"


def with_static(application: Any) -> Any:
    """Return the ASGI application with static files served in front of it.

    Collected files have a hash in their names and are compressed. Raises OSError if they cannot be
    collected.
    """
    if settings.DEBUG:
        return SourceFiles(
            application, autorefresh=True, max_age=0, allow_all_origins=False,
            add_headers_function=no_sniffing,
        )  # fmt: skip
    return ServeStaticASGI(
        application,
        root=collect_static(),
        prefix=settings.STATIC_URL,
        max_age=MAX_AGE_S,
        allow_all_origins=False,
        add_headers_function=no_sniffing,
    )
