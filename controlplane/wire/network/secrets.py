"""Secrets of the site, in variables of the environment or in files that these name."""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from controlplane.wire.errors import WireError

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_RULE: Final = "lower-case letters, digits, hyphens and _"


class SecretOf(StrEnum):
    """Whose secrets users name, by the beginning of the variables with them.

    Only these variables can be named, so that nobody sends other secrets of Weir away.
    """

    SINKS = "WEIR_SINK_SECRET_"
    TOPICS = "WEIR_TOPIC_SECRET_"
    WEBHOOKS = "WEIR_WEBHOOK_SECRET_"


class NoSecret(WireError):
    """A secret that the site does not have; str() names the variable to set."""


def read_secret(variable: str) -> str:
    """Return a variable, else the content of the file that `<variable>_FILE` names, else "".

    A file keeps the secret out of the environment of every process. Raises `OSError` if it cannot
    be read.
    """
    value, file = (os.environ.get(name, "").strip() for name in (variable, f"{variable}_FILE"))
    return value if value or not file else Path(file).expanduser().read_text().strip()


def is_secret_name(name: str) -> bool:
    """Return whether a secret can have this name."""
    return _NAME.fullmatch(name) is not None


def secret_names_fault(secrets: Mapping[str, str]) -> str:
    """Return what is wrong with the names of secrets by use, "" if nothing is."""
    are_names = all(isinstance(name, str) and is_secret_name(name) for name in secrets.values())
    return "" if are_names else f"the name of a secret has {_RULE}"


def named_secret(owner: SecretOf, name: str) -> str:
    """Return a secret of the site by its name. Raises `NoSecret`, without its value."""
    if not is_secret_name(name):
        raise NoSecret(f"Name a secret of the site: {_RULE}")
    variable = owner + name.upper().replace("-", "_")
    try:
        value = read_secret(variable)
    except OSError as error:
        text = f"The file that {variable}_FILE names cannot be read: {error.strerror}"
        raise NoSecret(text) from None
    if not value:
        raise NoSecret(f"The site has no secret {name}: set {variable}, or {variable}_FILE")
    return value
