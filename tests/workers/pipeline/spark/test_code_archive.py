"""The code that travels to executors on other machines."""

import os
import subprocess
import sys
from pathlib import Path

from workers.pipeline.spark.session import write_archive


def test_the_pipeline_runs_from_what_is_shipped(tmp_path: Path) -> None:
    """An executor has nothing of Weir but this file: no import may lead out of it."""
    path = write_archive(tmp_path)
    program = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'weir' not in repr(f)];"
        f"sys.path.insert(0, {str(path)!r});"
        "import workers.pipeline.nodes.processor as p;"
        "import workers.pipeline.split_nodes.source, workers.pipeline.sink;"
        "ours = {n: m for n, m in sys.modules.items()"
        "        if n.split('.')[0] in ('workers', 'controlplane', 'algorithms')};"
        f"assert all(m.__file__.startswith({str(path)!r}) for m in ours.values()), ours;"
        "print(len(ours))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_compiled_key_groupings_run_from_what_is_shipped(tmp_path: Path) -> None:
    """Every key grouping can be imported there, and one routes with compiled code."""
    path = write_archive(tmp_path)
    program = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'weir' not in repr(f)];"
        f"sys.path.insert(0, {str(path)!r});"
        "import numpy as np;"
        "from algorithms.partitioning.catalog import GROUPINGS, grouping_of, grouping_text;"
        "groupings = [grouping_of(grouping_text(name)) for name in GROUPINGS];"
        "from algorithms.partitioning.grouping import Messages, Workers;"
        "grouping = grouping_of(grouping_text('partial_key'));"
        "state = grouping.start(Workers.of(3));"
        "workers, _ = grouping.route(state, Messages(np.arange(90, dtype=np.uint64)));"
        "print(len(groupings), np.bincount(workers, minlength=3).sum())"
    )
    # The home of a worker on another machine, where nothing is compiled yet.
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "11 90\n"), done.stderr
