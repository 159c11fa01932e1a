"""The rows from a split node to a node.

Spark passes frames of pandas; a process without them does not load it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from workers.pipeline.exchange.envelope import Envelope, pack_envelopes, unpack_envelopes
from workers.pipeline.spark.partition_keys import NodeKeys

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "nk": pa.int32(),
    "head": pa.string(),
    "payload": pa.binary(),
}
ROUTED: Final = pa.schema(_COLUMNS)
ROUTED_DDL: Final = "nk int, head string, payload binary"


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of a batch, which each split node sends to every node.

    `export_version`: the version from which tasks export their state in this batch;
    `import_version`: the one from which they did in the batch before; None if none do.
    `clock_ms`: when the batch was planned; `elapsed_ms`: since when the one before was, None for
    the first. `has_backlog`: whether records waited at a node after the batch before. `split`:
    the sender. `nodes`: how many nodes take part in the batch. `republish`: whether the nodes write
    the rows of all open windows again, as Redis has lost them. `attempt`: how often the batch was
    begun, with this time.
    """

    batch: int
    version: int
    export_version: int | None
    import_version: int | None
    clock_ms: int
    elapsed_ms: int | None
    has_backlog: bool
    split: int
    nodes: int
    republish: bool = False
    attempt: int = 1


def to_rows(
    header: BatchHeader, keys: NodeKeys, envelopes: Sequence[Sequence[Envelope]]
) -> pa.RecordBatch:
    """Return one row per node, with the node's grouping key, the header and its envelopes."""
    text = json.dumps(asdict(header), separators=(",", ":"))
    return pa.RecordBatch.from_pydict(
        {
            "nk": keys.keys_of(header.nodes),
            "head": [text] * header.nodes,
            "payload": [pack_envelopes(of_node) for of_node in envelopes],
        },
        schema=ROUTED,
    )


@dataclass(frozen=True)
class NodeInput:
    """What one node gets in one batch: the envelopes in the order of the split nodes."""

    node: int
    header: BatchHeader
    envelopes: list[Envelope]
    bytes: int


def node_input(node: int, frames: "Sequence[pd.DataFrame]") -> NodeInput:
    """Return the input of a node; Spark promises no order within a group."""
    import pandas as pd  # noqa: PLC0415 - 46 MB in each process that only knows this module

    rows = pd.concat(frames) if len(frames) > 1 else frames[0]
    pairs = [
        (BatchHeader(**json.loads(header)), bytes(payload))
        for header, payload in zip(rows["head"], rows["payload"], strict=True)
    ]
    pairs.sort(key=lambda pair: pair[0].split)
    envelopes = [envelope for _, payload in pairs for envelope in unpack_envelopes(payload)]
    return NodeInput(node, pairs[0][0], envelopes, sum(len(payload) for _, payload in pairs))
