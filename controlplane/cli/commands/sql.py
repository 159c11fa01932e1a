"""weir sql."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from controlplane.cli.client.api import cluster_path
from controlplane.cli.client.connection import api_of
from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.output import print_sentence, print_table

FORMATS: Final = ("table", "csv", "json", "parquet", "arrow")
_BINARY: Final = ("parquet", "arrow")
_NUMBERS: Final = ("bigint", "double precision", "numeric")


def run_statement(given: Namespace) -> None:
    """Print the rows of a SELECT, or write them to a file."""
    output: Path | None = given.output
    form = "json" if given.json else given.format or _format_of(output)
    if output is None and form in _BINARY:
        message = f"{form} is not text: name a file"
        raise CliError(ExitCode.WRONG, message, advice="--output FILE")
    query = {"statement": given.statement, "format": "json" if form == "table" else form}
    answer = api_of(given).answer("GET", f"{cluster_path(given)}/sql", query)
    if output is not None:
        output.write_bytes(answer.content)
    elif form == "table":
        _print(answer.value)
    else:
        sys.stdout.write(answer.text if answer.text.endswith("\n") else f"{answer.text}\n")


def _format_of(output: Path | None) -> str:
    """Return the format that the name of a file has; raises `CliError`."""
    if output is None:
        return "table"
    suffix = output.suffix.removeprefix(".")
    if suffix in FORMATS[1:]:
        return suffix
    message = f"{output}: its name has no known extension"
    raise CliError(ExitCode.WRONG, message, advice=f"--format: {', '.join(FORMATS[1:])}")


def _print(result: dict[str, Any]) -> None:
    columns = {
        column["name"]: "number" if column["type"] in _NUMBERS else "text"
        for column in result["columns"]
    }
    print_table(columns, result["rows"], "no rows")
    if result["is_cut"]:
        print_sentence(f"The first {len(result['rows']):,} rows; there are others")
