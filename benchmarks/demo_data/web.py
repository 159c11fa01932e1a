"""Cut the demonstration's hours out of the source data.

python -m benchmarks.demo_data.web <folder with web_nasa_19950801.csv.gz>
"""

import sys
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.demo_data.taxis import parse_options
from workers.demo.web.recording import DATA, REQUESTS, SCHEMA, TIME

SOURCE: Final = "web_nasa_19950801.csv.gz"
# The directories that are streams of their own; all others are one.
DIRECTORIES: Final = 8
OTHERS: Final = "other"
ROOT: Final = "root"
_NOT_MODIFIED: Final = 304


def main() -> None:
    """Write requests.parquet."""
    arguments = parse_options(out=DATA)
    table = requests_of(pyarrow.csv.read_csv(arguments.source / SOURCE))
    path = arguments.out / REQUESTS
    pq.write_table(table, path, compression="zstd", compression_level=19)
    sys.stdout.write(f"{path.name}: {table.num_rows:,} rows, {path.stat().st_size:,} bytes\n")


def requests_of(log: Any) -> Any:
    """Return the requests with the columns of `SCHEMA`, and the directory that each is of."""
    prefixes = log["prefix"].to_pylist()
    keys, hosts = log["key_id"].to_pylist(), log["host_id"].to_pylist()
    sent = log["bytes"].cast(pa.uint32())
    columns: dict[str, Any] = {
        TIME: log["ts_ms"].cast(pa.timestamp("ms")).cast(SCHEMA.field(TIME).type),
        "url": pa.array([_url(*pair) for pair in zip(prefixes, keys, strict=True)]),
        "host": pa.array([f"host-{host}" for host in hosts]),
        "status": log["status"].cast(pa.int16()),
        "bytes": pc.if_else(
            pc.equal(sent, pa.scalar(0, pa.uint32())), pa.scalar(None, pa.uint32()), sent
        ),
        "cached": pc.equal(log["status"], pa.scalar(_NOT_MODIFIED, pa.int64())),
        "directory": pa.array(_directories(prefixes)),
    }
    return pa.table(columns).sort_by(TIME)


def _url(prefix: str, key: int) -> str:
    return f"/{key}" if prefix.startswith("(") else f"/{prefix}/{key}"


def _directories(prefixes: list[str]) -> list[str]:
    """Return the stream of each request: one of the busiest directories, or all others."""
    named = [ROOT if prefix == "(root)" else prefix for prefix in prefixes]
    busiest = sorted(set(named), key=lambda name: (-named.count(name), name))[:DIRECTORIES]
    return [name if name in busiest else OTHERS for name in named]


if __name__ == "__main__":
    main()
