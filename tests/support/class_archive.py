"""An archive of the classes that Spark loads: with it a JVM starts in half the processor time.

Java calls it a dynamic archive (class data sharing). It is made once for a Java and a PySpark.
`python -m tests.support.class_archive` is the application whose classes are archived.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyspark

# How Spark's launcher takes options for the JVM of the driver, and for no other.
VARIABLE: Final = "SPARK_SUBMIT_OPTS"
# On two busy cores it takes a minute.
_SECONDS: Final = 400


def archive_option(java_home: Path, folder: Path) -> str:
    """Return the option that lets this Java use the archive in the folder, which is made if needed.

    Empty for a Java without an archive of its own classes, on which this one would build.
    """
    modules = java_home / "lib" / "modules"
    if not (java_home / "lib" / "server" / "classes.jsa").exists() or not modules.exists():
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{_digest(modules)}.jsa"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            for old in folder.glob("*.jsa"):
                old.unlink()
            _make(archive, java_home)
    return f"-XX:SharedArchiveFile={archive}" if archive.exists() else ""


def _digest(modules: Path) -> str:
    """Return a hash of what the archive depends on: Java refuses one of other class paths."""
    status = modules.stat()
    spark = (pyspark.__version__, pyspark.__file__)
    text = f"{modules.resolve()} {status.st_size} {status.st_mtime_ns} {spark}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _make(archive: Path, java_home: Path) -> None:
    """Write the archive; without one, all that happens is that Spark starts as slowly as before."""
    unfinished = archive.with_suffix(".unfinished")
    options = {"JAVA_HOME": str(java_home), VARIABLE: f"-XX:ArchiveClassesAtExit={unfinished}"}
    # The pipes are open until the JVM has ended, which outlives the process that starts it.
    subprocess.run(
        [sys.executable, "-m", "tests.support.class_archive"],
        env={**os.environ, **options},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    if unfinished.exists():
        unfinished.rename(archive)


def main() -> None:
    """Run a batch query and a streaming query with state, on a session as Weir makes it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's custom

    from workers.pipeline.spark.session import session  # noqa: PLC0415

    spark = session("classes", 1)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counts = rows.groupBy((F.col("value") % 5).alias("key")).count()
    writer = counts.writeStream.format("noop").outputMode("update").trigger(once=True)
    writer.start().awaitTermination(_SECONDS)
    spark.range(100).groupBy((F.col("id") % 5).alias("key")).count().collect()
    spark.stop()


if __name__ == "__main__":
    main()
