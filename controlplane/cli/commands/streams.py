"""weir streams."""

from argparse import Namespace

from controlplane.cli.actors import viewed
from controlplane.cli.output import print_page_as_json, print_table, say_page
from controlplane.selectors.paging import MAX_PER_PAGE
from controlplane.selectors.streams import StreamFilters, streams_page


def listed(given: Namespace) -> None:
    """Print one page of a cluster's streams."""
    _, cluster = viewed(given)
    filters = StreamFilters(
        text=given.search,
        order=f"-{given.order}" if given.reverse else given.order,
        page=max(1, given.page),
        per_page=min(max(1, given.per_page), MAX_PER_PAGE),
    )
    page = streams_page(cluster, filters)
    rows = [
        {
            "name": row.stream.name,
            "title": row.stream.title,
            "declared_rate": row.stream.declared_rate,
            "rate": row.stream.rate,
            "split": row.stream.split,
            "queries": row.queries,
        }
        for row in page.rows
    ]
    if given.json:
        print_page_as_json(page, "streams", rows)
        return
    columns = {"stream": "name", "title": "text", "declared": "number", "rate": "number",
               "split": "number", "queries": "number"}  # fmt: skip
    print_table(columns, [list(row.values()) for row in rows], "no stream")
    say_page(page, "streams")
