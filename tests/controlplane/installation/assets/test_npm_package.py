"""A file of the npm registry is installed once, and only out of the published archive."""

import io
import tarfile
from base64 import b64encode
from hashlib import sha512
from pathlib import Path

import pytest

from controlplane.installation.assets.npm_package import NpmFile

MEMBER = "package/part.min.js"


def archive_of(name: str, content: bytes) -> tuple[bytes, str]:
    """Return a tar archive with one file, and its SHA-512 as the registry writes it."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as opened:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        opened.addfile(member, io.BytesIO(content))
    archive = written.getvalue()
    return archive, b64encode(sha512(archive).digest()).decode()


def file_of(digest: str) -> NpmFile:
    return NpmFile("@scope/part", "1.2.3", MEMBER, digest)


def test_a_file_is_read_out_of_its_archive() -> None:
    archive, digest = archive_of(MEMBER, b"content")
    assert file_of(digest).read(archive) == b"content"


def test_another_archive_is_refused() -> None:
    archive, _ = archive_of(MEMBER, b"content")
    _, other = archive_of(MEMBER, b"other")
    with pytest.raises(OSError, match="SHA-512"):
        file_of(other).read(archive)


def test_an_installed_file_is_not_downloaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, digest = archive_of(MEMBER, b"content")
    opened: list[str] = []

    def download(url: str, timeout: float) -> io.BytesIO:
        opened.append(url)
        return io.BytesIO(archive)

    monkeypatch.setattr("urllib.request.urlopen", download)
    target = tmp_path / "folder" / "part.js"
    for _ in range(2):
        assert file_of(digest).install(target).read_bytes() == b"content"
    assert opened == ["https://registry.npmjs.org/@scope/part/-/part-1.2.3.tgz"]
