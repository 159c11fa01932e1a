"""Traces of changes, from the request to the micro-batch in which they took effect.

Tasks and rows carry the context of their trace as `traceparent` (W3C). Unless this process sends
its spans (`controlplane.integrations.otlp`), none is recorded, and the extra `otel` not imported.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

HEADER: Final = "traceparent"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_tracers: "list[Tracer]" = []


def use(tracer: "Tracer | None") -> None:
    """Record spans by a tracer from now on, or by none."""
    _tracers[:] = [] if tracer is None else [tracer]


@contextmanager
def start_span(name: str, parent: str = "", **attributes: Any) -> "Iterator[Span | None]":
    """Yield the span of what is done meanwhile, None if no spans are recorded.

    `parent`: a traceparent; without a valid one the span belongs to the current one, or begins a
    trace.
    """
    if not _tracers:
        yield None
        return
    context = _context(parent)
    with _tracers[0].start_as_current_span(name, context, attributes=attributes) as result:
        yield result


def record(name: str, parent: str, start: datetime, end: datetime, **attributes: Any) -> str:
    """Record a span that has ended, in the trace of a row; return its traceparent."""
    if not _tracers or not parent:
        return ""
    from opentelemetry.trace import set_span_in_context  # noqa: PLC0415 - an extra

    # Whole microseconds: a float of seconds has not as many digits.
    start_ns, end_ns = ((moment - _EPOCH) // _MICROSECOND * 1000 for moment in (start, end))
    result = _tracers[0].start_span(
        name, _context(parent), attributes=attributes, start_time=start_ns
    )
    result.end(end_ns)
    return _traceparent(set_span_in_context(result))


def current() -> str:
    """Return the traceparent of the current span, "" if there is none."""
    return _traceparent(None) if _tracers else ""


def _traceparent(context: "Context | None") -> str:
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - an extra

    carrier: dict[str, str] = {}
    tracecontext.TraceContextTextMapPropagator().inject(carrier, context)
    return carrier.get(HEADER, "")


def _context(parent: str) -> "Context | None":
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - an extra

    carrier = {HEADER: parent}
    return tracecontext.TraceContextTextMapPropagator().extract(carrier) if parent else None
