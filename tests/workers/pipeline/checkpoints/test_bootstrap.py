"""The state that a new checkpoint begins with."""

import json
from pathlib import Path

import pytest

from workers.pipeline.checkpoints.bootstrap import (
    BootstrapDamaged,
    BootstrapWriter,
    has_pending_bootstrap,
    kept_start,
    read_bootstrap,
)
from workers.pipeline.checkpoints.files import WrongPartitions
from workers.pipeline.engine.store import MemoryStore

OFFSET = {"batch": 41, "position": "7-0", "total": 12, "version": 3, "export_version": None}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint of five partitions whose seed has state of nodes 0 and 2."""
    writer = BootstrapWriter(tmp_path)
    assert writer.write(0, [("marks", b"{}"), ("numbers/3", b"\x00\xff")]) == 4
    writer.write(2, [("marks", b"{1}")])
    writer.finish(5, OFFSET)
    return tmp_path


def plan_batch(checkpoint: Path) -> None:
    """Do what Spark does before a first batch."""
    (checkpoint / "offsets").mkdir()
    (checkpoint / "offsets" / "0").write_text(
        'v1\n{"conf": {"spark.sql.shuffle.partitions": "5"}}\n{"batch": 42}'
    )


def finish_batch(checkpoint: Path) -> None:
    """Do what Spark does after it."""
    (checkpoint / "commits").mkdir()
    (checkpoint / "commits" / "0").touch()


def test_each_node_gets_its_own_state_in_the_first_batch(checkpoint: Path) -> None:
    """A node that is new has none."""
    seed = read_bootstrap(checkpoint, 5)
    assert seed is not None
    assert seed.offset == OFFSET
    stores = [MemoryStore() for _ in range(5)]
    for node, store in enumerate(stores):
        seed.import_state(store, node, batch=42)
    assert stores[0] == {"marks": b"{}", "numbers/3": b"\x00\xff"}
    assert stores[2] == {"marks": b"{1}"}
    assert stores[1] == stores[3] == stores[4] == {}


def test_later_batches_do_not_get_it_again(checkpoint: Path) -> None:
    """Pages that changed since would be set back."""
    seed, store = read_bootstrap(checkpoint, 5), MemoryStore()
    assert seed is not None
    seed.import_state(store, 0, batch=43)
    assert store == {}


def test_a_seed_is_dropped_once_a_batch_is_whole(checkpoint: Path) -> None:
    """The state is in Spark's store then."""
    assert has_pending_bootstrap(checkpoint)
    plan_batch(checkpoint)
    assert read_bootstrap(checkpoint, 5) is not None, "the batch has to be run again with it"
    finish_batch(checkpoint)
    assert not has_pending_bootstrap(checkpoint)
    assert read_bootstrap(checkpoint, 5) is None
    assert not (checkpoint / "seed").exists()


def test_another_number_of_partitions_is_refused(checkpoint: Path) -> None:
    """Nodes would get each other's state."""
    with pytest.raises(WrongPartitions, match="5 partitions, not 3"):
        read_bootstrap(checkpoint, 3)


def test_a_file_that_is_not_whole_is_noticed(checkpoint: Path) -> None:
    """An error is better than half a state."""
    seed = read_bootstrap(checkpoint, 5)
    assert seed is not None
    BootstrapWriter(checkpoint / "other").write(0, [("marks", b"{}")])
    (checkpoint / "other" / "seed" / "0.arrow").replace(checkpoint / "seed" / "0.arrow")
    with pytest.raises(BootstrapDamaged, match="1 of 2"):
        seed.import_state(MemoryStore(), 0, batch=42)


def test_a_first_batch_that_runs_again_begins_where_it_did(tmp_path: Path) -> None:
    """Redis may say that it is finished, when Spark does not know that yet."""
    checkpoint = tmp_path / "checkpoint"
    assert json.loads(kept_start(checkpoint, lambda: {"batch": 7})) == {"batch": 7}
    assert json.loads(kept_start(checkpoint, lambda: {"batch": 8})) == {"batch": 8}
    plan_batch(checkpoint)
    assert json.loads(kept_start(checkpoint, lambda: {"batch": 1009})) == {"batch": 8}
    finish_batch(checkpoint)
    assert kept_start(checkpoint, lambda: {"batch": 1009}) == ""
