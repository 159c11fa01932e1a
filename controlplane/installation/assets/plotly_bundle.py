"""The bundle of Plotly that pages load: only the chart types that Weir draws, if it is installed.

The bundle of the Python package has all chart types: 4.8 MB, three times as much. The partial
bundle of the same version comes from the npm registry, checked against its published digest, and
stands in the Python environment. Without it, pages load the whole bundle.
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from controlplane.installation.assets.folders import environment_folder
from controlplane.installation.assets.npm_package import NpmFile

# The version is that of the bundle in the Python package `plotly`; a test compares them.
VERSION: Final = "4.1.1"
_FILE: Final = NpmFile(
    "plotly.js-cartesian-dist-min",
    VERSION,
    "package/plotly-cartesian.min.js",
    "o8GrFeusncwBIxbBynRJpY4pkgVB6caM+JLpwrLYbbsO7dZ8FJ+SVN2Fr+L7kiG/Z6w4P5O0Jus/Qr5EefHVeg==",
)
_VERSION_TEXT: Final = re.compile(rb"plotly\.js .{0,40}?v([0-9.]+)")


def partial_bundle() -> Path:
    """Return where the partial bundle stands once it is installed."""
    return environment_folder() / f"plotly-cartesian-{VERSION}.min.js"


def whole_bundle() -> Path:
    """Return the bundle inside the installed package `plotly`. Raises ModuleNotFoundError.

    The package is located, not imported: drawing belongs to the dashboard.
    """
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("plotly is not installed: pip install plotly")
    return Path(spec.submodule_search_locations[0]) / "package_data" / "plotly.min.js"


def served_bundle() -> Path:
    """Return the bundle that pages load: the partial one if it is installed and fits the package.

    Raises ModuleNotFoundError if `plotly` is not installed.
    """
    whole = whole_bundle()
    partial = partial_bundle()
    return partial if partial.is_file() and version_of(whole) == VERSION else whole


def version_of(bundle: Path) -> str:
    """Return the version in the head of a bundle, "" if there is none."""
    with bundle.open("rb") as opened:
        match = _VERSION_TEXT.search(opened.read(200))
    return match[1].decode() if match else ""


def install_partial_bundle() -> Path:
    """Download the partial bundle unless it is installed, and return its path.

    Raises OSError if the registry cannot be reached or the archive is not the expected one.
    """
    return _FILE.install(partial_bundle())
