"""Which executor a Python worker says it belongs to."""

import pytest

from workers.pipeline.spark.connections import executor_id


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "driver"),
        ({"SPARK_LOG_URL_STDERR": "http://w:8081/logPage/?appId=a&executorId=3&logType=x"}, "3"),
        ({"SPARK_LOG_URL_STDERR": "http://nm:8042/node/containerlogs/container_1/weir",
          "CONTAINER_ID": "container_1"}, "container_1"),
        ({"SPARK_EXECUTOR_ID": "7"}, "7"),
    ],
)  # fmt: skip
def test_the_environment_tells_the_executor(environment: dict[str, str], told: str) -> None:
    """Each of Spark's masters has its own way of saying it."""
    assert executor_id(environment) == told
