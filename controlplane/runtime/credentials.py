"""The first login: a random password in a file of the data directory that only its owner reads."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME: Final = "operator"
FILE: Final = "login"


@dataclass(frozen=True, slots=True)
class Login:
    """A name and password, the file with both, and whether this start created them."""

    name: str
    password: str
    file: Path
    is_new: bool


def ensure_login(data: Path) -> Login:
    """Return the login of this data directory, created at the first start."""
    file = data / "secrets" / FILE
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        name, _, password = file.read_text().strip().partition(" ")
        return Login(name, password, file, is_new=False)
    password = "-".join(secrets.token_hex(2) for _ in range(4))
    with os.fdopen(descriptor, "w") as opened:
        opened.write(f"{NAME} {password}\n")
    return Login(NAME, password, file, is_new=True)
