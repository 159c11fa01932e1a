"""Sessions of Spark for computations of Weir, beside the applications of clusters."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from controlplane.processes.runtime.java import find_java
from workers.agent.class_archive import java_environment

_ROOT: Final = Path(__file__).resolve().parents[2]


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


class _Jvm:
    """The id of the process that started the JVM of PySpark in this one, 0 without one."""

    starter = 0


def _forget_inherited() -> None:
    """Let PySpark start a JVM of this process if it knows one of the process that forked it.

    Otherwise the tasks would run below the JVM of that process, which the end of this one does not
    end, and both would use the same connections.
    """
    if _Jvm.starter not in (0, os.getpid()):
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - PySpark has no function for it
        SparkContext._active_spark_context = None  # noqa: SLF001
        SparkSession._instantiatedSession = None  # noqa: SLF001


@contextmanager
def session_at(master: str, folder: Path, name: str) -> Iterator[SparkSession]:
    """Yield a session on a master: `local[2]`, or the URL of a cluster; it is stopped at the end.

    `folder`: for a stand-in Java home, if one is needed. `name`: that of the application. Raises
    `CheckFailed` without Java.
    """
    _forget_inherited()
    java = find_java(os.environ, folder / "java", _report)
    os.environ |= java_environment(java.home)
    # The tasks need the packages of this Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = (str(_ROOT), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys(paths)))
    builder = SparkSession.builder.master(master).appName(name)
    # The caller shows progress; Spark's own bars would overwrite it.
    for hidden in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(hidden, "false")
    # On a busy machine a Python process takes longer than the 15 s by default to connect.
    builder = builder.config("spark.python.authenticate.socketTimeout", "120s")
    session = builder.getOrCreate()
    _Jvm.starter = os.getpid()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
