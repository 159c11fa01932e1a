"""Static files: plotly.min.js out of the plotly package, and the ASGI application that serves all.

Files are found where they are installed: there is no collecting step and no copied third-party
file. Responses carry an entity tag, so a browser asks again cheaply after MAX_AGE_S.
"""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from wsgiref.headers import Headers

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder, find, get_finders
from django.core.files.storage import FileSystemStorage
from servestatic import ServeStaticASGI

PLOTLY = "vendor/plotly.min.js"
MAX_AGE_S = 60


def plotly_folder() -> Path:
    """Return the folder of the installed plotly package that holds plotly.min.js.

    The package is located, not imported: drawing belongs to the dashboard.
    """
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("plotly is not installed: pip install plotly")
    return Path(spec.submodule_search_locations[0]) / "package_data"


class PlotlyFinder(BaseFinder):
    """Finds exactly one file, vendor/plotly.min.js."""

    def __init__(self) -> None:
        self.storage = FileSystemStorage(location=plotly_folder())
        self.storage.prefix = "vendor"  # type: ignore[attr-defined]

    def check(self, **kwargs: Any) -> list[Any]:
        """Return no system checks; plotly_folder raises an error for a missing package."""
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        """Return where vendor/plotly.min.js stands; nothing for any other path."""
        paths = [self.storage.path("plotly.min.js")] if path == PLOTLY else []
        if find_all or kwargs.get("all"):
            return paths
        # Django takes any other empty answer for a hit.
        return paths[0] if paths else []

    def list(
        self, ignore_patterns: Iterable[str] | None
    ) -> Iterator[tuple[str, FileSystemStorage]]:
        """Yield the one file."""
        yield "plotly.min.js", self.storage


class FoundStatic(ServeStaticASGI):  # type: ignore[misc]
    """Serves what Django's finders find; with DEBUG it searches at each request."""

    def candidate_paths_for_url(self, url: str) -> Iterator[str]:
        """Yield the file of a static URL."""
        name = url.removeprefix(settings.STATIC_URL)
        path = find(name) if name != url else None
        if path:
            yield path

    def add_found_files(self) -> None:
        """Read every file the finders know once; an earlier finder wins."""
        for finder in get_finders():
            for path, storage in finder.list(None):
                prefix = (
                    f"{storage_prefix}/"
                    if (storage_prefix := getattr(storage, "prefix", None))
                    else ""
                )
                url = f"{settings.STATIC_URL}{prefix}{path}"
                if url not in self.files:
                    self.add_file_to_dictionary(url, storage.path(path), root=storage.location)


def no_sniffing(headers: Headers, path: str, url: str) -> None:
    """Keep browsers to the declared content type."""
    headers["X-Content-Type-Options"] = "nosniff"


def with_static(application: Any) -> Any:
    """Return the ASGI application with static files served in front of it."""
    served = FoundStatic(
        application,
        autorefresh=settings.DEBUG,
        max_age=0 if settings.DEBUG else MAX_AGE_S,
        allow_all_origins=False,
        add_headers_function=no_sniffing,
    )
    if not settings.DEBUG:
        served.add_found_files()
    return served
