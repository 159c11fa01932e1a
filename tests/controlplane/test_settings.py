"""Settings that follow from the environment, read in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, os
from controlplane import settings
settings.DESTINATIONS = os.environ["WEIR_DESTINATIONS_LIST"]
names = [name for name in dir(settings) if name.isupper()]
print(json.dumps({name: getattr(settings, name) for name in names
                  if isinstance(getattr(settings, name), bool | int | str)}))
"""


def settings_with(tmp_path: Path, **environment: str) -> dict[str, Any]:
    """Return the plain settings of a process with the environment."""
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True,
        env={**os.environ, "WEIR_DATA_DIR": str(tmp_path), **environment},
    )  # fmt: skip
    settings: dict[str, Any] = json.loads(process.stdout)
    return settings


def test_cookies_behind_https_are_secure_and_of_this_host(tmp_path: Path) -> None:
    """The prefix __Host- lets no other host, path or plain address set them."""
    settings = settings_with(tmp_path, WEIR_HTTPS="1")
    assert settings["SESSION_COOKIE_NAME"] == "__Host-sessionid"
    assert settings["CSRF_COOKIE_NAME"] == "__Host-csrftoken"
    assert settings["SESSION_COOKIE_SECURE"] is settings["CSRF_COOKIE_SECURE"] is True
    assert settings["SESSION_COOKIE_HTTPONLY"] is True
    assert settings["SECURE_HSTS_SECONDS"] == 365 * 24 * 3600
    assert settings["DEBUG"] is False


OWN = "redis://127.0.0.1:6390"


@pytest.mark.parametrize(
    ("environment", "is_local"),
    [
        ({}, True),
        ({"WEIR_ALLOWED_HOSTS": "localhost"}, True),
        ({"WEIR_ALLOWED_HOSTS": "localhost,weir.example"}, False),
        ({"WEIR_HTTPS": "1"}, False),
        ({"WEIR_TRUSTED_PROXIES": "127.0.0.1"}, False),
    ],
)
def test_a_deployed_site_reaches_nothing_on_its_machine(
    environment: dict[str, str], is_local: bool, tmp_path: Path
) -> None:
    """A developer's machine has the usual ports and a folder; both the site's own Redis."""
    given = {"REDIS_URL": f"{OWN}/0", "WEIR_DESTINATIONS": "", **environment}
    words = settings_with(tmp_path, **given)["DESTINATIONS"].split()
    assert words[-1] == OWN
    assert ("kafka://127.0.0.0/8:9092-9094" in words) is is_local
    kinds = {word.partition("://")[0] for word in words}
    assert kinds == ({"kafka", "redis", "postgresql", "file"} if is_local else {"redis"})
