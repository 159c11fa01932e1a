"""The Spark session of a cluster, tuned for many small micro-batches.

The master decides where the nodes run: in the driver's own JVM (`local[n]`), or on the executors of
a standalone cluster (`spark://…`), of YARN (`yarn`) or of Kubernetes (`k8s://…`).
"""

import logging
import os
import socket
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from controlplane.child_processes import preload
from controlplane.child_processes.socket_folders import own_directory, shared_directory
from controlplane.wire import limits
from controlplane.wire.language.registered import MODULES as _FUNCTIONS
from controlplane.wire.network import destinations
from workers.pipeline.spark.launch import launch_jvm
from workers.pipeline.spark.partition_keys import with_retries

_ROOT: Final = Path(__file__).resolve().parents[3]
_PYTHON: Final = Path(__file__).with_name("python.sh")
_PACKAGES: Final = (
    "workers/pipeline", "controlplane/wire", "controlplane/formats", "controlplane/child_processes",
    "algorithms/partitioning",
)  # fmt: skip
# What key groupings import beside their own package.
_MODULES: Final = (
    "checks", "compiled", "errors", "estimates", "optional", "random_numbers", "vocabulary",
)  # fmt: skip
_COMMIT_MANAGER: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# Of each task: one attempt may be killed, one may end by a query, which the next one identifies.
_LOCAL_ATTEMPTS: Final = 4
# The hot loops are Arrow's: half of the JVM's time would go into optimising code that only carries
# rows, and a collector for large heaps costs threads and memory (docs/benchmarks.md).
_JAVA: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=25 "
    "-Xms64m -XX:ReservedCodeCacheSize=64m -Xss512k -XX:TrimNativeHeapInterval=60000 "
    # Maps the archive of classes where it was written for: elsewhere Java writes to each page, and
    # each JVM has 150 MB of its own.
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
)
_SMALL: Final = {
    # What Spark's pages would show is kept without them, by default for a thousand batches.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.sql.ui.retainedExecutions": "10",
    # A batch has few rows, but would have code generated for each part of its plan.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_ARROW_BATCH_BYTES: Final = 8 << 20
_LOOPBACK: Final = "127.0.0.1"
# Names of settings and variables, and of options of source and sink, with secrets.
_HIDDEN_NAMES: Final = (
    r"(?i)secret|passw|token|credential|access[.]?key|private[.]?key|_url$|[.]url$"
)
_HIDDEN_OPTIONS: Final = r"(?i)url|^reader$|secret|passw|token|credential"
# URLs with passwords, in the descriptions of plans.
_HIDDEN_TEXTS: Final = r"(?<=://)[^\s/@]*:[^\s/]*(?=@)"
# Other values would spoil the checkpoint: it fixes which partition has the state of a node.
_FIXED: Final = frozenset({
    "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled", "spark.sql.session.timeZone",
    "spark.sql.streaming.stateStore.providerClass",
})  # fmt: skip


def ship_code(spark: SparkSession) -> None:
    """Send the pipeline's modules from this driver to every executor on another machine.

    So both always run the same version. The packages that the modules import (numpy, pyarrow,
    redis, …) must be installed there: see docs/operations/own-cluster.md.
    """
    # The driver serves the file as long as it runs; Spark removes this directory at its end.
    folder = Path(SparkFiles.getRootDirectory()) / "weir"
    folder.mkdir(exist_ok=True)
    spark.sparkContext.addPyFile(str(write_archive(folder)))


def write_archive(folder: Path) -> Path:
    """Write the pipeline's modules, and nothing else of Weir, to a zip file and return it."""
    path = folder / "weir_pipeline.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for parent in {package.partition("/")[0] for package in _PACKAGES}:
            archive.write(_ROOT / parent / "__init__.py", f"{parent}/__init__.py")
        for package in _PACKAGES:
            for module in sorted((_ROOT / package).rglob("*.py")):
                archive.write(module, module.relative_to(_ROOT).as_posix())
        for name in _MODULES:
            archive.write(_ROOT / "algorithms" / f"{name}.py", f"algorithms/{name}.py")
    return path


class SettingRejected(ValueError):
    """A Spark setting that Weir must choose itself."""


@dataclass(frozen=True)
class SparkSettings:
    """Which Spark runs an application.

    `driver_host`: the address at which executors reach the driver; empty: found on its own. `conf`:
    further Spark settings, which go before Weir's own.
    """

    master: str = "local[2]"
    driver_host: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Return whether all nodes run in the driver's own JVM."""
        return self.master.startswith("local")


def session(cluster: str, partitions: int, engine: SparkSettings | None = None) -> SparkSession:
    """Return a session with this number of partitions for stateful operators.

    Raises `SettingRejected`.
    """
    engine = engine or SparkSettings()
    # It logs every connection and every call of a listener.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # The JVM and all workers of this machine inherit it.
    for name, value in preload.SPARING.items():
        os.environ.setdefault(name, value)
    folder = own_directory() if engine.is_local else shared_directory()
    _choose_python(engine, folder)
    master = with_retries(engine.master, _LOCAL_ATTEMPTS)
    place = {"spark.master": master, "spark.app.name": f"weir-{cluster}"}
    chosen = place | settings(partitions, engine, folder)
    launch_jvm(chosen)
    builder = SparkSession.builder
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _write_no_checksum_files(spark)
    if not engine.is_local:
        ship_code(spark)
    return spark


def _write_no_checksum_files(spark: SparkSession) -> None:
    """Let Hadoop write no file of checksums beside each local file of the checkpoint.

    It starts the program `chmod` for each file that it creates.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no function for it
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
    # The one that all of this JVM share.
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(configuration).setWriteChecksum(False)


def _choose_python(engine: SparkSettings, folder: str | None) -> None:
    """Set the Python of Spark's processes: workers must find the packages that this driver has.

    Those of a local master are forked from the process that the agent forks drivers from, or from
    one of this driver, which loads while the JVM starts.
    """
    given = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A spare that becomes a driver has chosen before, and its Java knows no other process.
    is_own = given == sys.executable and os.access(_PYTHON, os.X_OK)
    if engine.is_local and folder and is_own and sys.platform == "linux":
        path = os.environ.get("WEIR_FORK_SERVER", "")
        if not preload.answers(path):
            module, log = "workers.pipeline.spark.loaded", Path(os.devnull)
            path = preload.Preloaded(module, os.environ, log, folder).path
        os.environ |= {
            "WEIR_PYTHON": sys.executable, "WEIR_FORK_SERVER": path,
            "PYSPARK_PYTHON": str(_PYTHON), "PYSPARK_DRIVER_PYTHON": str(_PYTHON),
        }  # fmt: skip


def settings(partitions: int, engine: SparkSettings, folder: str | None = None) -> dict[str, str]:
    """Return the Spark settings of an application; sockets are in `folder` (None: TCP is used).

    Raises `SettingRejected`.
    """
    for name in engine.conf:
        if name in _FIXED:
            raise SettingRejected(f"{name} is Weir's to choose: the checkpoint depends on it")
    place = _loopback() if engine.is_local else {**_spread(partitions), **_reachable(engine)}
    return {**_common(partitions), **place, **_sockets(folder), **engine.conf}


def memory_of(spark: SparkSession) -> str:
    """Return the memory of a JVM that runs nodes, in the notation of Spark's settings."""
    conf = spark.sparkContext.getConf()
    local = (spark.sparkContext.master or "").startswith("local")
    name = "spark.driver.memory" if local else "spark.executor.memory"
    return conf.get(name, "1g") or "1g"


def _common(partitions: int) -> dict[str, str]:
    return {
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.default.parallelism": str(partitions),
        "spark.ui.enabled": "false",
        **_SMALL,
        # Hadoop gives the files of checkpoints modes of its own.
        "spark.hadoop.fs.permissions.umask-mode": "077",
        # What pages and logs of Spark hide: the sink and the source have the URL of Redis.
        "spark.redaction.regex": _HIDDEN_NAMES,
        "spark.sql.redaction.options.regex": _HIDDEN_OPTIONS,
        "spark.redaction.string.regex": _HIDDEN_TEXTS,
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": _JAVA,
        "spark.executor.extraJavaOptions": _JAVA,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        # Shuffle files of tiny batches are not worth compressing.
        "spark.shuffle.compress": "false",
        "spark.python.worker.reuse": "true",
        # Rows of envelopes and results have megabytes each: few of them at a time are enough.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_ARROW_BATCH_BYTES),
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
        "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "64",
        # A rename of a written file instead of a create-and-verify: ten times faster commits.
        "spark.sql.streaming.checkpointFileManagerClass": _COMMIT_MANAGER,
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "16",
        "spark.sql.streaming.metricsEnabled": "false",
        # Batches run when there is input; an idle cluster writes nothing.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.log.level": "WARN",
    }


def _loopback() -> dict[str, str]:
    return {
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
    }


def _sockets(directory: str | None) -> dict[str, str]:
    """Return the settings for Unix domain sockets between JVM and Python; None: TCP."""
    if directory is None:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }


def _spread(partitions: int) -> dict[str, str]:
    """Return the settings that give each partition an executor, if the cluster has room."""
    # Users' functions are looked up, and their limits and the list of logs hold, on executors, too.
    names = (_FUNCTIONS, destinations.LIST, *limits.SETTINGS)
    inherited = {name: os.environ.get(name, "") for name in names}
    return {
        **{f"spark.executorEnv.{name}": value for name, value in inherited.items() if value},
        "spark.executor.cores": "1",
        # How many executors: of a standalone cluster, and of YARN and Kubernetes.
        "spark.cores.max": str(partitions),
        "spark.executor.instances": str(partitions),
        # A partition stays with the executor that has its state. So the first batch waits until
        # the executors are there, else the first one would keep all partitions ...
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        # ... and a partition that waits this long behind another goes to an executor that is idle.
        "spark.locality.wait": "1s",
        # One after another, each executor may be lost within one batch.
        "spark.task.maxFailures": "8",
    }


def _reachable(engine: SparkSettings) -> dict[str, str]:
    """Return at which address executors reach the driver; nothing if Spark has to find it."""
    if engine.driver_host:
        # The name may be that of a gateway or a service, which is not an address of this machine.
        return {
            "spark.driver.host": engine.driver_host, "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104
            # Else executors in pods would connect to the address that the driver listens on.
            "spark.kubernetes.executor.useDriverPodIP": "false",
        }  # fmt: skip
    result = _address_towards(engine.master)
    return {"spark.driver.host": result, "spark.driver.bindAddress": result} if result else {}


def _address_towards(master: str) -> str:
    """Return this machine's address on the way to the master, "" if that is unknown."""
    parts = urlsplit(master.removeprefix("k8s://") if "://" in master else "")
    # Of several masters any will do.
    host, _, port = parts.netloc.partition(",")[0].rpartition(":")
    if not host:
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the kernel only chooses the way.
            probe.connect((host, int(port)))
        except (OSError, ValueError):
            return ""
        return str(probe.getsockname()[0])
