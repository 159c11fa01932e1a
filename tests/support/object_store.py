"""An object store for tests: moto, a real process with the interface of Amazon's S3."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from pyarrow import fs

from tests.support.redis_server import free_port
from tests.support.topics import wait_until

BUCKET = "lake"
KEYS = ("test-access", "test-secret")
REGION = "eu-central-1"


@dataclass
class ObjectStore:
    """A running store with an empty bucket."""

    url: str

    @property
    def files(self) -> fs.FileSystem:
        """Return the store as a reader of another team opens it."""
        place = self.url.removeprefix("http://")
        access, key = KEYS
        return fs.S3FileSystem(access_key=access, secret_key=key, scheme="http", region=REGION,
                               endpoint_override=place, allow_bucket_creation=True)  # fmt: skip

    @property
    def options(self) -> dict[str, str]:
        """Return the options of a reader of Delta."""
        return {"AWS_ACCESS_KEY_ID": KEYS[0], "AWS_SECRET_ACCESS_KEY": KEYS[1],
                "AWS_ENDPOINT_URL": self.url, "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": REGION}  # fmt: skip

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties of a reader of Iceberg."""
        return {"s3.endpoint": self.url, "s3.region": REGION,
                "s3.access-key-id": KEYS[0], "s3.secret-access-key": KEYS[1]}  # fmt: skip

    def require_logins(self) -> None:
        """Refuse all keys from now on."""
        headers = {"Content-Type": "text/plain"}
        address = f"{self.url}/moto-api/reset-auth"
        urlopen(Request(address, b"0", headers, method="POST"), timeout=60).close()


@contextmanager
def running_store() -> Iterator[ObjectStore]:
    """Yield a store on a port of its own."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet)
    store = ObjectStore(f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: _answers(store.url), "the store answers", 120)
        store.files.create_dir(BUCKET)
        yield store
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    with suppress(URLError, OSError):
        urlopen(f"{url}/moto-api/", timeout=10).close()
        return True
    return False
