"""The Spark settings of an application, by where it runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.pipeline.spark import session
from workers.pipeline.spark.session import SettingRejected, SparkSettings, settings

ROOT = Path(__file__).parents[4]


def test_a_local_application_is_not_reachable_from_elsewhere() -> None:
    """Whoever reaches a driver's port may run code in it."""
    found = settings(4, SparkSettings("local[2]"))
    assert found["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.executor.cores" not in found


def test_a_cluster_gives_each_partition_an_executor() -> None:
    """Else all partitions would share the first executor that comes."""
    found = settings(4, SparkSettings("spark://127.0.0.1:7077"))
    assert found["spark.executor.cores"] == "1"
    assert found["spark.cores.max"] == found["spark.executor.instances"] == "4"
    assert found["spark.sql.shuffle.partitions"] == "4"


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:7077", "spark://127.0.0.1:7077,other:7077", "k8s://https://127.0.0.1:6443"]
)  # fmt: skip
def test_executors_reach_the_driver_where_it_reaches_the_master(master: str) -> None:
    """A machine has several addresses, and the loopback one is of no use elsewhere."""
    found = settings(4, SparkSettings(master))
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"


def test_the_address_is_not_the_loopback_one_for_a_master_elsewhere() -> None:
    """The kernel knows the way; without one Spark is left to find an address."""
    found = settings(4, SparkSettings("spark://192.0.2.9:7077"))
    assert found.get("spark.driver.host") != "127.0.0.1"


def test_yarn_says_no_address_so_spark_finds_one() -> None:
    """The master of YARN is in Hadoop's own files."""
    assert "spark.driver.host" not in settings(4, SparkSettings("yarn"))


def test_a_given_address_is_told_to_executors_and_all_are_listened_on() -> None:
    """It may be that of a service in front of this machine."""
    found = settings(4, SparkSettings("yarn", "driver.example.org"))
    assert found["spark.driver.host"] == "driver.example.org"
    assert found["spark.kubernetes.executor.useDriverPodIP"] == "false"
    assert found["spark.driver.bindAddress"] == "0.0.0.0"


def test_a_sites_own_settings_go_first_but_for_those_the_checkpoint_needs() -> None:
    """A node's state is found by the number of partitions."""
    conf = {"spark.executor.memory": "3g", "spark.cores.max": "2"}
    found = settings(4, SparkSettings("spark://127.0.0.1:7077", conf=conf))
    assert conf.items() <= found.items()
    with pytest.raises(SettingRejected, match=r"spark\.sql\.shuffle\.partitions"):
        settings(4, SparkSettings(conf={"spark.sql.shuffle.partitions": "8"}))


def test_users_functions_are_looked_up_on_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors do not inherit the driver's environment."""
    monkeypatch.setenv("WEIR_FUNCTIONS", "site.functions")
    monkeypatch.setenv("WEIR_DESTINATIONS_LIST", "kafka://a:1 redis://b:2")
    found = settings(4, SparkSettings("spark://127.0.0.1:7077"))
    assert found["spark.executorEnv.WEIR_FUNCTIONS"] == "site.functions"
    assert found["spark.executorEnv.WEIR_DESTINATIONS_LIST"] == "kafka://a:1 redis://b:2"


def test_sockets_are_used_where_there_is_a_directory_for_them() -> None:
    """A site can switch them off; without a directory TCP is used."""
    name = "spark.python.unix.domain.socket.enabled"
    assert settings(2, SparkSettings(), "/tmp/d")[name] == "true"
    assert settings(2, SparkSettings(), "/tmp/d")["spark.python.unix.domain.socket.dir"] == "/tmp/d"
    assert name not in settings(2, SparkSettings())
    assert settings(2, SparkSettings(conf={name: "false"}), "/tmp/d")[name] == "false"


def test_sparks_python_processes_are_forked_from_a_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Executors of other machines have a Python of their own; so has a driver without a server."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "WEIR_PYTHON", "WEIR_FORK_SERVER"):
        # Restored after the test.
        monkeypatch.setenv(name, "")
        os.environ.pop(name)
    session._choose_python(SparkSettings("spark://a:7077"), str(tmp_path))
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    # A module of the test, which reports what is loaded.
    (tmp_path / "reporting.py").write_text(
        "import sys; print(sys.argv[1:], 'pandas' in sys.modules)"
    )
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{tmp_path}")
    session._choose_python(SparkSettings("local[2]"), str(tmp_path))
    for is_forked in (True, False):
        command = [os.environ["PYSPARK_PYTHON"], "-m", "reporting", "a b", "*"]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout == f"['a b', '*'] {is_forked}\n"
        monkeypatch.setenv("WEIR_FORK_SERVER", str(tmp_path / "gone"))
