"""The partial bundle of Plotly is that of the package's version, and only the published one."""

import io
import tarfile
from base64 import b64encode
from hashlib import sha512
from pathlib import Path

import pytest

from controlplane.assets import plotly_bundle
from controlplane.assets.plotly_bundle import (
    VERSION,
    checked_member,
    partial_bundle,
    served_bundle,
    version_of,
    whole_bundle,
)


def archive_of(name: str, content: bytes) -> tuple[bytes, str]:
    """Return a tar archive with one file, and its SHA-512 as the registry writes it."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as opened:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        opened.addfile(member, io.BytesIO(content))
    archive = written.getvalue()
    return archive, b64encode(sha512(archive).digest()).decode()


def test_both_bundles_have_one_version() -> None:
    """Figures are made for the version of the Python package."""
    assert version_of(whole_bundle()) == VERSION
    if partial_bundle().is_file():
        assert version_of(partial_bundle()) == VERSION
        assert served_bundle() == partial_bundle()


def test_a_bundle_is_read_out_of_its_archive() -> None:
    archive, digest = archive_of("package/plotly-cartesian.min.js", b"content")
    assert checked_member(archive, digest) == b"content"


def test_another_archive_is_refused() -> None:
    archive, _ = archive_of("package/plotly-cartesian.min.js", b"content")
    _, other = archive_of("package/plotly-cartesian.min.js", b"other")
    with pytest.raises(OSError, match="SHA-512"):
        checked_member(archive, other)


@pytest.mark.parametrize("head", [None, b"* plotly.js v1.0.0"])
def test_pages_load_the_whole_bundle_where_no_partial_one_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: bytes | None
) -> None:
    """Without it, or after an update of the package."""
    if head is None:
        monkeypatch.setattr(plotly_bundle, "partial_bundle", lambda: tmp_path / "missing.js")
    else:
        (tmp_path / "whole.js").write_bytes(head)
        monkeypatch.setattr(plotly_bundle, "whole_bundle", lambda: tmp_path / "whole.js")
    assert served_bundle() == plotly_bundle.whole_bundle()
