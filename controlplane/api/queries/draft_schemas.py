"""Schemas of the preview and the explanation of queries that are not submitted yet."""

from controlplane.api.common.schemas import fields_of, shown
from controlplane.explain.drafts.explanation import (
    DraftExplanation,
    DraftPlace,
    DraftStream,
    StateEstimate,
)
from controlplane.explain.drafts.values import Preview, PreviewWindow, ReadStream
from controlplane.explain.query_report import SharedQuery


class ReadStreamOut(fields_of(ReadStream)):  # type: ignore[misc]
    """The records of a stream that a preview evaluated; first, last: their event times."""


class PreviewWindowOut(fields_of(PreviewWindow)):  # type: ignore[misc]
    """A window of one key; errors has for an aggregate without a value the reason."""

    model_config = shown("start key values")


class QueryPreviewOut(fields_of(Preview, without="streams windows")):  # type: ignore[misc]
    """The newest windows of a query over the newest records of its streams, newest first.

    window_count: of all its windows. late: records older than the lateness; rejected: records that
    do not match their schema. is_partial: true if a limit left out records. Windows that began
    before the first evaluated record are incomplete.
    """

    streams: list[ReadStreamOut]
    windows: list[PreviewWindowOut]


class DraftStreamOut(fields_of(DraftStream)):  # type: ignore[misc]
    """A stream that the query would read; is_measured: false if the rate is only declared."""


class DraftSharedOut(fields_of(SharedQuery)):  # type: ignore[misc]
    """A running query with the same computation on the node; records_per_s: of common streams."""


class DraftPlaceOut(fields_of(DraftPlace)):  # type: ignore[misc]
    """The node that the online placement would choose now; added_per_s: deliveries/s to it.

    received: how many of the streams the node receives already. task_ranges: [node, first, stop) of
    several tasks.
    """


class StateEstimateOut(fields_of(StateEstimate)):  # type: ignore[misc]
    """The expected bytes of state; least: one key in each open window, most: one for each record.

    is_measured: true if they follow from a running query with the same computation.
    """


class DraftExplanationOut(fields_of(DraftExplanation, without="streams shared state place")):  # type: ignore[misc]
    """What a query would read, share and keep, and its node; place is null if no node is active."""

    streams: list[DraftStreamOut]
    shared: list[DraftSharedOut]
    state: StateEstimateOut
    place: DraftPlaceOut | None
