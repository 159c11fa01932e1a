"""Blocks on their way to the sink: cut by size, no window in two pieces."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import StateSchema, schema_named, schema_names
from controlplane.wire.query_text import QueryText
from tests.support.stored import HOUR_MS, computed
from workers.pipeline.engine.complete_windows import WindowBlock
from workers.pipeline.exchange.blocks import pack_blocks, split_tables, unpack_blocks

TOP = computed(QueryText({"n": "count(*)", "t": "top_k(volts, 3)"}, 3600.0, key=("meter",)))


def tables(hours: int, meters: int) -> list[tuple[str, StateSchema, Any]]:
    """Return slots and cells of so many meters in so many hours, three cells per window."""
    slots, cells, _ = schema_names(layout_of(TOP))
    place = [(hour * HOUR_MS, f"m{meter}") for hour in range(hours) for meter in range(meters)]
    zeros = {"query": 9, "run": 0, "task": 0, "stream": 1}
    rows: dict[str, list[dict[str, Any]]] = {
        slots: [{**zeros, "pane": pane, "k0": key, "s0": 1} for pane, key in place],
        cells: [
            {**zeros, "pane": pane, "k0": key, "a": 1, "c": cell, "t": None, "added": 1}
            for pane, key in place
            for cell in range(3)
        ],
    }
    return [
        (name, schema_named(name), pa.Table.from_pylist(some, schema_named(name).arrow))
        for name, some in rows.items()
    ]


@pytest.mark.parametrize(("hours", "meters"), [(200, 3), (1, 600), (4, 150), (1, 1)])
def test_pieces_hold_whole_windows_and_all_of_them(hours: int, meters: int) -> None:
    """Many short windows, one long one with many keys, and both."""
    whole = tables(hours, meters)
    size = sum(table.nbytes for _, _, table in whole)
    pieces = list(split_tables(whole, 8_000))
    assert len(pieces) >= min(size // 16_000, 64)
    seen: list[tuple[int, str]] = []
    for piece in pieces:
        (_, _, slots), (_, _, cells) = piece
        mine = list(zip(slots["pane"].to_pylist(), slots["k0"].to_pylist(), strict=True))
        of_cells = list(zip(cells["pane"].to_pylist(), cells["k0"].to_pylist(), strict=True))
        assert sorted(of_cells) == sorted(mine * 3)
        seen += mine
    assert sorted(seen) == sorted(
        (hour * HOUR_MS, f"m{meter}") for hour in range(hours) for meter in range(meters)
    )


def test_rows_bring_blocks_with_their_recipients() -> None:
    """Bounded by the row, each block as it is stored."""
    blocks = [WindowBlock([(query, 2), (query + 1, 0)], tables(10, query)) for query in (1, 5, 9)]
    rows = list(pack_blocks(blocks, 1_000))
    assert len(rows) == 3
    (one,) = pack_blocks(blocks, 1 << 20)
    sent = [found for row in rows for found in unpack_blocks(row)]
    assert list(unpack_blocks(one)) == sent
    assert [recipients for recipients, _ in sent] == [
        [(1, 2), (2, 0)], [(5, 2), (6, 0)], [(9, 2), (10, 0)]
    ]  # fmt: skip
    (_, slots), (_, cells) = sent[1][1]
    assert (len(slots), len(cells)) == (50, 150)
    assert np.asarray(slots["s0"]).sum() == 50
