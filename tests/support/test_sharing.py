"""Which tests a process starts next."""

from tests.support.sharing import next_scope, scope_of

WEIR = scope_of("tests/end_to_end/test_secrets.py::test_a")
SPARK = scope_of("tests/workers/pipeline/test_ladder_kill.py::test_a")
OTHER_SPARK = scope_of("tests/workers/attach/test_real_job.py::test_a")
SMALL = scope_of("tests/test_language.py::test_a")


def test_spark_runs_in_one_process_beside_the_shared_weir() -> None:
    assert next_scope([WEIR, SPARK, SMALL], []) == WEIR
    assert next_scope([SPARK, OTHER_SPARK, SMALL], [WEIR]) == SPARK
    assert next_scope([OTHER_SPARK, SMALL], [WEIR, SPARK]) == SMALL
    assert next_scope([OTHER_SPARK], [SPARK]) == OTHER_SPARK
    assert next_scope([OTHER_SPARK, SMALL], [SMALL]) == OTHER_SPARK
