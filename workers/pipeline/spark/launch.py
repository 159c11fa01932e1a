"""Start of Spark's JVM without settings on its command line, which every user can read.

PySpark passes all settings to `spark-submit` as `--conf name=value`. So a file that only this user
can read has them; it is removed when the JVM runs.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark import SparkContext

_VARIABLE: Final = "PYSPARK_SUBMIT_ARGS"
# What PySpark passes by default.
_SHELL: Final = "pyspark-shell"


def launch_jvm(settings: Mapping[str, str]) -> None:
    """Start this process's JVM with the settings; do nothing if there is one already."""
    descriptor, name = tempfile.mkstemp(prefix="weir-spark-", suffix=".conf")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())
    given = os.environ.get(_VARIABLE)
    # spark-defaults.conf has what Weir does not set.
    options = f"--properties-file {name} --load-spark-defaults"
    os.environ[_VARIABLE] = f"{options} {given or _SHELL}"
    try:
        # Spark's public function that starts a JVM and nothing else.
        SparkContext.getSystemProperty("java.version")
    finally:
        Path(name).unlink()
        if given is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = given


def _escaped(text: str) -> str:
    """Return a key or a value of a Java properties file."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    for character in "=: #!":
        escaped = escaped.replace(character, f"\\{character}")
    return escaped
