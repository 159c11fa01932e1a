"""One file of a package of the npm registry, checked against the digest that it publishes.

The repository holds no third-party file; Node is not needed.
"""

import base64
import hashlib
import io
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_REGISTRY: Final = "https://registry.npmjs.org"
_MAX_BYTES: Final = 8 * 1024 * 1024
_PATIENCE_S: Final = 60


@dataclass(frozen=True)
class NpmFile:
    """A file inside an archive of a package; `sha512`: the registry's `integrity`, base64."""

    package: str
    version: str
    member: str
    sha512: str

    @property
    def url(self) -> str:
        """Return the address of the archive."""
        name = self.package.rpartition("/")[2]
        return f"{_REGISTRY}/{self.package}/-/{name}-{self.version}.tgz"

    def install(self, target: Path) -> Path:
        """Download the file to `target` unless it exists, and return its path.

        Raises OSError if the registry cannot be reached or the archive is not the expected one.
        """
        if target.is_file():
            return target
        with urllib.request.urlopen(self.url, timeout=_PATIENCE_S) as answer:  # noqa: S310 - https
            archive = answer.read(_MAX_BYTES + 1)
        content = self.read(archive)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_suffix(".part")
        draft.write_bytes(content)
        draft.replace(target)
        return target

    def read(self, archive: bytes) -> bytes:
        """Return the file inside an archive. Raises OSError if the digest is another one."""
        digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        if digest != self.sha512:
            raise OSError(f"{self.url} is not the expected archive: its SHA-512 is {digest}")
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
            member = opened.extractfile(self.member)
            if member is None:
                raise OSError(f"{self.url} has no {self.member}")
            return member.read()
