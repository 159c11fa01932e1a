"""Secrets of the site, in variables of the environment or in files that these name."""

import os
from pathlib import Path


def read_secret(variable: str) -> str:
    """Return a variable, else the content of the file that `<variable>_FILE` names, else "".

    A file keeps the secret out of the environment of every process. Raises `OSError` if it cannot
    be read.
    """
    value, file = (os.environ.get(name, "").strip() for name in (variable, f"{variable}_FILE"))
    return value if value or not file else Path(file).expanduser().read_text().strip()
