"""The memory of a page in Chromium that stays open for an hour, or is sent the samples of one.

Data is what the page keeps without the code that its scripts are compiled to.
"""

import json
from typing import Any, Final

from playwright.sync_api import CDPSession, Page

from benchmarks.pages.browsing import PATIENCE_MS, metrics, wait_for
from benchmarks.pages.report import Figure

# What makes the window of samples and the browser's caches full, before memory is compared.
WARM_SAMPLES: Final = 300
# Samples per second at which an hour is played.
PACE: Final = 60
_CODE: Final = ("code", "object shape")
# What the developer tools, by which the page is driven, keep of each request.
_TOOLS: Final = ("blink::NetworkResourcesData::ResourceData", "blink::XHRReplayData")
_CHUNK: Final = "HeapProfiler.addHeapSnapshotChunk"
_KEEP_NEWEST: Final = """() => {
  const keep = ({ detail }) => { window.benchNewest = detail.at(-1); };
  addEventListener("weir:sample!", keep, { once: true });
}"""
_PLAY: Final = """async ([count, pace]) => {
  let t = window.benchPlayed ?? window.benchNewest.t;
  for (let i = 0; i < count; i += 1) {
    t += 1000;
    const factor = 1 + 0.2 * Math.sin(t / 300e3);
    const loads = window.benchNewest.loads.map((load) => load * factor);
    const sample = { ...window.benchNewest, t, emitted_ms: t, loads };
    dispatchEvent(new CustomEvent("weir:sample!", { detail: [sample] }));
    await new Promise((resolve) => setTimeout(resolve, 1000 / pace));
  }
  window.benchPlayed = t;
  await new Promise((resolve) => setTimeout(resolve, 2000));
}"""


def played_figures(page: Page, session: CDPSession, samples: int) -> list[Figure]:
    """Return the growth of the heap and of the DOM while samples of an hour are played.

    The samples are dispatched in the page as its socket does, faster than they arrive; the charts
    draw at most once per second, so each draw has the samples of a minute or so.
    """
    page.evaluate(_KEEP_NEWEST)
    wait_for(page, "window.benchNewest !== undefined")
    page.set_default_timeout(10 * PATIENCE_MS)
    page.evaluate(_PLAY, [WARM_SAMPLES, PACE])
    before = memory(session)
    page.evaluate(_PLAY, [samples, PACE])
    return growth(before, memory(session), f"{samples} samples at {PACE}/s in the page")


def open_figures(page: Page, session: CDPSession, minutes: int) -> list[Figure]:
    """Return the same while the page stays open for minutes, from its fifth minute on."""
    page.wait_for_timeout(1000 * WARM_SAMPLES)
    before = memory(session)
    page.wait_for_timeout(60_000 * minutes)
    return growth(before, memory(session), f"{minutes} minutes of real time")


def growth(before: dict[str, float], after: dict[str, float], note: str) -> list[Figure]:
    """Return the growth of each figure of `memory`, in percent."""
    return [
        Figure(f"growth of {name} in an hour", 100 * (after[name] / value - 1), 10, "%",
               f"{value:,.0f} to {after[name]:,.0f}; {note}")
        for name, value in before.items()
    ]  # fmt: skip


def memory(session: CDPSession) -> dict[str, float]:
    """Return the bytes of the heap, its data's and the number of DOM nodes, without garbage."""
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    known = metrics(session)
    return {
        "the heap": known["JSHeapUsedSize"],
        "DOM nodes": known["Nodes"],
        "data in the heap": data_bytes(session),
    }


def data_bytes(session: CDPSession) -> int:
    """Return the bytes of what the page keeps, by a snapshot of its heap.

    Compiled code is left out, and what the developer tools keep. Chromium compiles a function
    again with more optimizations after many calls. How much it keeps compiled follows from the
    calls, and ends with the last function.
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
    kind, name, size = (meta["node_fields"].index(part) for part in ("type", "name", "self_size"))
    tools = {place for place, text in enumerate(snapshot["strings"]) if text in _TOOLS}
    return sum(
        nodes[start + size]
        for start in range(0, len(nodes), width)
        if kinds[nodes[start + kind]] not in _CODE and nodes[start + name] not in tools
    )
