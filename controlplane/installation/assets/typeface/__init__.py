"""The typeface of the pages, Inter, as files of the npm registry; without it, the system's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controlplane.installation.assets.folders import environment_folder
from controlplane.installation.assets.npm_package import NpmFile

_PACKAGE: Final = "@fontsource-variable/inter"
_VERSION: Final = "5.3.0"
_SHA512: Final = (
    "OupL48va4JNofb97w6NYeF9S7W/kHNKM0Er8Dem5nqi4jeOLrVJDoE8tZEpnMJmtkvNbB1EIPPwHcdkF6b1oUA=="
)
_RANGES: Final = ("latin", "latin-ext")


def typeface_files() -> Mapping[str, Path]:
    """Return the style sheet of the typeface and its files by their names under `vendor/`."""
    files = {f"inter-{part}.woff2": _target(part) for part in _RANGES}
    if not all(path.is_file() for path in files.values()):
        return {"typeface.css": Path(__file__).with_name("system.css")}
    return {"typeface.css": Path(__file__).with_name("inter.css"), **files}


def install_typeface() -> None:
    """Download the typeface unless it is installed.

    Raises OSError if the registry cannot be reached or the archive is not the expected one.
    """
    for part in _RANGES:
        member = f"package/files/inter-{part}-wght-normal.woff2"
        NpmFile(_PACKAGE, _VERSION, member, _SHA512).install(_target(part))


def _target(part: str) -> Path:
    return environment_folder() / f"inter-{_VERSION}-{part}.woff2"
