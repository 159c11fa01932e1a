"""As many partitions as executors have cores."""

import os

import pytest

from workers.pipeline.spark.partition_keys import (
    cores_of,
    partition_warning,
    partitions_for,
    with_retries,
)


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local[2]", 2), ("local[16]", 16), ("local", 1), ("local[3,2]", 3),
     ("local[*]", os.cpu_count()), ("yarn", None),
     ("spark://a:7077", None), ("k8s://https://a:6443", None)],
)  # fmt: skip
def test_the_cores_of_a_master(master: str, cores: int | None) -> None:
    assert cores_of(master) == cores


@pytest.mark.parametrize(
    ("master", "retries"),
    [("local[2]", "local[2,4]"), ("local[*]", "local[*,4]"), ("local", "local[1,4]"),
     ("local[3,2]", "local[3,2]"), ("yarn", "yarn"), ("spark://a:7077", "spark://a:7077"),
     ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]")],
)  # fmt: skip
def test_a_local_master_retries_tasks(master: str, retries: str) -> None:
    assert with_retries(master, 4) == retries


def test_a_setting_goes_before_the_cores_and_elsewhere_nodes_count() -> None:
    assert partitions_for("local[2]", 0, 8) == 2
    assert partitions_for("local[2]", 5, 8) == 5
    assert partitions_for("yarn", 0, 8) == 8
    assert partitions_for("yarn", 3, 8) == 3


def test_a_checkpoint_with_other_partitions_than_cores_is_told_of() -> None:
    """It works, but slower than it could."""
    assert partition_warning(None, 2) == partition_warning(2, 2) == ""
    assert "has 8 Spark partitions" in partition_warning(8, 2)
