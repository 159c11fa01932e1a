"""The line of a driver's output that an operator sees."""

import pytest

from controlplane.wire.errors import cause_line

# As Spark reports the error of a Python data source: the traceback of its worker within its own.
STREAM_FAILED = """\
pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query [id = 3f] \
terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python \
streaming data source perform latestOffset: Traceback (most recent call last):
  File "/app/pyspark/sql/streaming/python_streaming_source_runner.py", line 205, in main
    latest_offset_func(reader, outfile)
  File "/app/controlplane/wire/log/kafka_message.py", line 112, in decode
    raise BadMessage(offset, "it has no header")
controlplane.wire.errors.BadMessage: message 0 of the topic: it has no header 'weir'
. SQLSTATE: 38000
=== Streaming Query ===
Identifier: [id = 3f, runId = 4a]
Current State: ACTIVE
Thread State: RUNNABLE
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.pythonDataSourceError(Errors.scala:1)
\t... 12 more
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (STREAM_FAILED, "message 0 of the topic: it has no header 'weir'"),
        ("Traceback (most recent call last):\n" + STREAM_FAILED,
         "message 0 of the topic: it has no header 'weir'"),
        ("starting\nKeyError: 'x'\nat Some.java:12\n", "KeyError: 'x'"),
        ("Traceback (most recent call last):\n  File 'x'\nredis.exceptions.ConnectionError: 111\n",
         "redis.exceptions.ConnectionError: 111"),
        ("Traceback (most recent call last):\n  File 'x'\nValueError: a\n\nDuring handling of the "
         "above, another one:\n\nTraceback (most recent call last):\n  File 'y'\nLogGap: b\n",
         "LogGap: b"),
        ("java.lang.OutOfMemoryError: heap\n\tat a.ErrorHandler.f(B.scala:1)\n",
         "java.lang.OutOfMemoryError: heap"),
        ("one\ntwo", "two"),
        ("", ""),
        ("ERROR cannot reach kafka://u:pw@h:1/t", "ERROR cannot reach kafka://u:***@h:1/t"),
    ],
)  # fmt: skip
def test_the_cause_is_shown(text: str, line: str) -> None:
    assert cause_line([row for row in text.splitlines() if row.strip()]) == line
