"""Spans are sent by OTLP over HTTP; those that the receiver does not accept are lost."""

import logging
from collections.abc import Sequence
from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from controlplane.events import traces
from controlplane.integrations import outbound

try:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
except ImportError:
    text = "WEIR_OTLP_URL needs OpenTelemetry: pip install 'weir[otel]'"
    raise ImproperlyConfigured(text) from None

logger = logging.getLogger(__name__)
PERIOD_MS = 1000


class Exporter(SpanExporter):
    """Sends spans to the destination of the settings, in the thread of the processor."""

    def export(self, recorded: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans once."""
        headers = {"Content-Type": "application/x-protobuf"}
        if settings.OTLP_TOKEN:
            headers["Authorization"] = f"Bearer {settings.OTLP_TOKEN}"
        body = encode_spans(recorded).SerializeToString()
        try:
            target = outbound.resolved(settings.OTLP_URL)
            status, answer = outbound.post(target, headers, body)
        except (outbound.AddressRejected, outbound.AddressUnreachable) as error:
            status, answer = 0, str(error)
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return SpanExportResult.SUCCESS
        logger.warning("%d spans are lost: %s %.200s", len(recorded), status or "", answer)
        return SpanExportResult.FAILURE


def start() -> TracerProvider:
    """Record and send the spans of this process and of its forks."""
    provider = TracerProvider(resource=Resource.create({"service.name": "weir"}))
    provider.add_span_processor(BatchSpanProcessor(Exporter(), schedule_delay_millis=PERIOD_MS))
    traces.use(provider.get_tracer("weir"))
    return provider
