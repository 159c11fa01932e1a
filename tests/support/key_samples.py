"""Samples of keys as split nodes report them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from algorithms.partitioning.replay import key_hashes
from controlplane.connections import redis_client
from controlplane.models import Query
from controlplane.wire.key_samples import MAX_LABELS, KeySample, write

HOT: Mapping[str, int] = {"taxi": 400, **{f"car {i}": 2 for i in range(300)}}
EVEN: Mapping[str, int] = {f"car {i}": 3 for i in range(300)}


def samples_of(
    query: Query,
    end: datetime,
    keys: Mapping[str, int],
    *,
    seconds: int = 30,
    records_per_s: float = 1_000.0,
    splits: int = 1,
    tasks: int | None = None,
    shares: Sequence[float] | None = None,
    streams: Mapping[str, int] | None = None,
) -> list[KeySample]:
    """Return one sample a second of each split node, the last one planned at `end`.

    `keys`: records by the text of the key, the most frequent first. `shares`: of the records by
    task; by default each key has one task, by its hash.
    `streams`: the id of the stream of each key, by default unknown.
    """
    count = tasks or query.task_count
    hashes = dict(zip(keys, key_hashes(len(keys)).tolist(), strict=True))
    total = sum(keys.values())
    records = records_per_s / splits
    of_task = [0.0] * count
    for key, part in keys.items():
        of_task[hashes[key] % count] += part / total
    rows = []
    for second in range(seconds):
        planned = end - timedelta(seconds=seconds - 1 - second)
        clock_ms = round(planned.timestamp() * 1000)
        rows += [
            KeySample(
                query=query.pk, batch=clock_ms // 1000, split=split, clock_ms=clock_ms,
                elapsed_ms=1000, records=round(records), hashes=list(hashes.values()),
                counts=list(keys.values()), labels=list(keys)[:MAX_LABELS],
                tasks=[{hashes[key] % count: part} for key, part in keys.items()][:MAX_LABELS],
                task_records=[round(records * share) for share in shares or of_task],
                streams=() if streams is None else tuple(
                    {streams[key]: part} for key, part in list(keys.items())[:MAX_LABELS]
                ),
            )
            for split in range(splits)
        ]  # fmt: skip
    return rows


def sampled(query: Query, end: datetime, keys: Mapping[str, int] = HOT, **more: object) -> None:
    """Store such samples."""
    write(redis_client(), query.cluster.slug, samples_of(query, end, keys, **more))  # type: ignore[arg-type]
