"""Passwords of known breaches: a sorted file of hashes is searched on the disk."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from pytest_django import Settings

from controlplane.access.logins import breached_passwords
from controlplane.access.logins.breached_passwords import BadListError, contains
from controlplane.installation.env import EnvironmentValueError

pytestmark = pytest.mark.nightly("access")

ROOT = Path(__file__).parents[3]
KNOWN = "correct horse battery staple"


def digest(password: str) -> str:
    return hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()


def written(path: Path, passwords: list[str], end: str = "\r\n", last: str = "\r\n") -> Path:
    """Write the list of passwords, with counts of different lengths."""
    lines = [f"{digest(word)}:{7 ** (number % 9)}" for number, word in enumerate(passwords)]
    path.write_bytes((end.join(sorted(lines)) + last).encode())
    return path


@pytest.mark.parametrize(("end", "last"), [("\r\n", "\r\n"), ("\n", "\n"), ("\n", "")])
@pytest.mark.parametrize("count", [1, 2, 3, 500])
def test_each_password_of_the_list_is_known_and_no_other(
    tmp_path: Path, count: int, end: str, last: str
) -> None:
    words = [f"password {number}" for number in range(count)]
    path = written(tmp_path / "list.txt", words, end, last)
    assert all(contains(path, word) for word in words)
    assert not any(contains(path, f"other {number}") for number in range(300))


def test_a_search_reads_a_few_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "list.txt", [f"password {number}" for number in range(20_000)])
    reads = []
    original = breached_passwords._line_from

    def counted(*arguments: object) -> object:
        reads.append(arguments)
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(breached_passwords, "_line_from", counted)
    assert contains(path, "password 19999")
    assert len(reads) <= 25


@pytest.mark.django_db
def test_a_password_of_the_list_is_refused_everywhere(tmp_path: Path, settings: Settings) -> None:
    """On the account page; by Django's admin and its commands, which use the same validators."""
    settings.BREACHED_PASSWORDS = str(written(tmp_path / "list.txt", [KNOWN, "another one"]))
    user = User.objects.create_user("alice", password="a long enough password")
    client = Client()
    client.force_login(user)
    form = {"current": "a long enough password", "new": KNOWN, "repeated": KNOWN}
    refused = client.post("/account/password/", form)
    assert refused.status_code == 422
    assert "breach" in refused.context["errors"]["new"][0]
    with pytest.raises(ValidationError):
        validate_password(KNOWN)
    form |= {"new": f"{KNOWN} heron", "repeated": f"{KNOWN} heron"}
    assert client.post("/account/password/", form).status_code == 302


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"password\n123456\n", "lines of a SHA-1"),
        (b"\x00" * 100_000, "lines of a SHA-1"),
        (b"F" * 40 + b":1\n" + b"0" * 40 + b":1\n" + b"1" * 40 + b":1\n", "in the order"),
    ],
)
def test_another_file_is_refused_at_the_start(
    tmp_path: Path, settings: Settings, content: bytes, message: str
) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(content)
    settings.BREACHED_PASSWORDS = str(path)
    with pytest.raises(EnvironmentValueError, match=message):
        breached_passwords.check()


def test_a_list_out_of_order_is_no_answer(tmp_path: Path) -> None:
    """Where a search meets a line out of order, it does not return that a password is unknown."""
    lines = [f"{number:040X}:1\n" for number in (9, 8, 7, 2**160 - 1, 6, 5, 4)]
    path = tmp_path / "list.txt"
    path.write_text("".join(lines))
    with pytest.raises(BadListError, match="order"):
        contains(path, KNOWN)


def test_a_right_list_passes_the_check_at_the_start(tmp_path: Path, settings: Settings) -> None:
    for count in (1, 2, 70, 3000):
        words = [f"password {number}" for number in range(count)]
        settings.BREACHED_PASSWORDS = str(written(tmp_path / "list.txt", words))
        breached_passwords.check()


def test_a_missing_list_ends_the_start_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "absent.txt"
    done = subprocess.run(
        [sys.executable, "-m", "controlplane.cli.main", "whoami"],
        capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
        env=os.environ | {"WEIR_BREACHED_PASSWORDS": str(path), "WEIR_DATA": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode != 0
    assert f"WEIR_BREACHED_PASSWORDS='{path}': cannot be read: No such file" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.django_db
def test_a_list_that_vanishes_refuses_new_passwords(tmp_path: Path, settings: Settings) -> None:
    """No password is accepted that was not looked up."""
    settings.BREACHED_PASSWORDS = str(tmp_path / "absent.txt")
    with pytest.raises(ValidationError, match="WEIR_BREACHED_PASSWORDS"):
        validate_password(f"{KNOWN} heron")
