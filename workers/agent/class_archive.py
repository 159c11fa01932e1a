"""The archive of the classes that Spark loads: with it a driver starts in less time.

Java calls it a dynamic archive (class data sharing). `python -m workers.agent.class_archive` makes
it for the Java and the PySpark of this environment; `make install` does so. Without one, JVMs start
as usual.
"""

import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from controlplane.processes.runtime.errors import CheckFailed
from controlplane.processes.runtime.java import find_java, wheel_folder

# How Spark's launcher takes options for the JVM of the driver, and for no other.
VARIABLE: Final = "SPARK_SUBMIT_OPTS"
_FOLDER: Final = Path(sys.prefix) / "java-classes"
_SECONDS: Final = 400
# The application whose classes are archived.
_RUN: Final = "run"
# The classes that it loads; an archive of others has another name.
_CLASSES: Final = "rehearsal"


def java_environment(home: Path, folder: Path = _FOLDER) -> dict[str, str]:
    """Return the variables of a driver on this Java, with the folder's archive if there is one."""
    variables = {"JAVA_HOME": str(home)}
    archive = _archive(home, folder)
    if archive is not None and archive.exists():
        option, own = f"-XX:SharedArchiveFile={archive}", os.environ.get(VARIABLE, "")
        # An option of this environment comes later, so it takes precedence.
        variables[VARIABLE] = own if option in own else f"{option} {own}".strip()
    return variables


def make(home: Path, folder: Path = _FOLDER) -> bool:
    """Make the archive for this Java unless it exists; return whether there is one now.

    A Java without an archive of its own classes, on which this one builds, has none.
    """
    archive = _archive(home, folder)
    if archive is None:
        return False
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Those of other Javas, and what an interrupted installation has left.
        for old in folder.iterdir():
            old.unlink()
        _write(archive, home)
    return archive.exists()


def _archive(home: Path, folder: Path) -> Path | None:
    """Return the archive's file, None for a Java that cannot have one.

    Java refuses an archive of another Java or other class paths, so the name depends on both.
    """
    modules = home / "lib" / "modules"
    if not (home / "lib" / "server" / "classes.jsa").exists() or not modules.exists():
        return None
    status = modules.stat()
    spark = version("pyspark"), wheel_folder("pyspark")
    text = f"{modules.resolve()} {status.st_size} {status.st_mtime_ns} {spark} {_CLASSES}"
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.jsa"


def _write(archive: Path, home: Path) -> None:
    unfinished = archive.with_suffix(f".{os.getpid()}")
    options = f"-XX:ArchiveClassesAtExit={unfinished} -Xlog:disable"
    # The pipes are open until the JVM has ended, which outlives the process that starts it.
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603 - this module, with this Python
            [sys.executable, "-m", "workers.agent.class_archive", _RUN],
            env={**os.environ, "JAVA_HOME": str(home), VARIABLE: options},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    if unfinished.exists():
        unfinished.rename(archive)


def _run() -> None:
    """Start Spark as a driver does, and run the batches of a spare."""
    # The agent, which imports this module, needs no Spark in its own process.
    from workers.pipeline.rehearsal import PARTITIONS, rehearse  # noqa: PLC0415
    from workers.pipeline.spark.session import session  # noqa: PLC0415

    spark = session("classes", PARTITIONS)
    rehearse(spark)
    spark.stop()


def main() -> int:
    """Make the archive. Its absence is not an error: everything works without."""
    if sys.argv[1:] == [_RUN]:
        _run()
        return 0
    try:
        java = find_java(os.environ, Path(sys.prefix) / "java", print)
    except CheckFailed:
        # Whatever needs Java reports that when it starts.
        return 0
    make(java.home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
