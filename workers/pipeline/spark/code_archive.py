"""The pipeline's code on its way to executors on other machines.

They get the modules of this very driver, so both always run the same version. The packages these
import (numpy, pyarrow, redis, …) must be installed there: see docs/operations.md.
"""

import zipfile
from pathlib import Path
from typing import Final

from pyspark import SparkFiles
from pyspark.sql import SparkSession

_ROOT: Final = Path(__file__).resolve().parents[3]
_PACKAGES: Final = ("workers/pipeline", "controlplane/wire")


def ship_code(spark: SparkSession) -> None:
    """Send the pipeline's modules from this driver to every executor."""
    # The driver serves the file as long as it runs; Spark removes this directory at its end.
    folder = Path(SparkFiles.getRootDirectory()) / "weir"
    folder.mkdir(exist_ok=True)
    spark.sparkContext.addPyFile(str(write_archive(folder)))


def write_archive(folder: Path) -> Path:
    """Write the pipeline's modules, and nothing else of Weir, to a zip file and return it."""
    path = folder / "weir_pipeline.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _PACKAGES:
            parent = package.partition("/")[0]
            archive.write(_ROOT / parent / "__init__.py", f"{parent}/__init__.py")
            for module in sorted((_ROOT / package).rglob("*.py")):
                archive.write(module, module.relative_to(_ROOT).as_posix())
    return path
