"""Secrets of the site that receivers of webhooks require, by name: never in rows."""

import re
from typing import Final

from controlplane.installation import env

# Only variables of this prefix can be named, so that nobody sends other secrets of Weir away.
VARIABLE: Final = "WEIR_WEBHOOK_SECRET_"
_NAME: Final = re.compile(r"[a-z0-9-]{1,60}")


class NoSecret(Exception):
    """A secret that the site does not have; str() names the variable to set."""


def named_secret(name: str, *, is_needed: bool = False) -> str:
    """Return a secret of the site, "" for the name "". Raises `NoSecret`."""
    if not name and not is_needed:
        return ""
    if not _NAME.fullmatch(name):
        raise NoSecret("Name a secret of the site: lower-case letters, digits and hyphens")
    variable = VARIABLE + name.upper().replace("-", "_")
    try:
        value = env.secret(variable)
    except env.EnvironmentValueError as error:
        raise NoSecret(str(error)) from None
    if not value:
        raise NoSecret(f"The site has no secret {name}: set {variable}, or {variable}_FILE")
    return value
