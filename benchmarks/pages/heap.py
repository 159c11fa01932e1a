"""The memory of a page in Chromium: its data, without the code that its scripts are compiled to."""

import json
from typing import Any, Final

from playwright.sync_api import CDPSession

_CODE: Final = ("code", "object shape")
_CHUNK: Final = "HeapProfiler.addHeapSnapshotChunk"


def data_bytes(session: CDPSession) -> int:
    """Return the bytes of what the page keeps, by a snapshot of its heap, compiled code left out.

    Chromium compiles a function again with more optimizations after many calls. How much it keeps
    compiled follows from the calls, and ends with the last function.
    """
    chunks: list[str] = []

    def keep(event: dict[str, Any]) -> None:
        chunks.append(event["chunk"])

    session.on(_CHUNK, keep)
    session.send("HeapProfiler.takeHeapSnapshot", {"reportProgress": False})
    session.remove_listener(_CHUNK, keep)
    snapshot = json.loads("".join(chunks))
    meta, nodes = snapshot["snapshot"]["meta"], snapshot["nodes"]
    kinds, width = meta["node_types"][0], len(meta["node_fields"])
    kind, size = meta["node_fields"].index("type"), meta["node_fields"].index("self_size")
    return sum(
        nodes[start + size]
        for start in range(0, len(nodes), width)
        if kinds[nodes[start + kind]] not in _CODE
    )
