"""Batches of results as JSON over HTTP, signed as webhooks are; the cursor is that of Weir.

A batch may be sent twice: a receiver ignores a row whose `seq` is smaller than what it has.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import pydantic_core
from django.utils import timezone

from controlplane.errors import Invalid
from controlplane.integrations import outbound
from controlplane.integrations.webhooks import signature_headers
from controlplane.results.feed import FeedPlace
from controlplane.sinks.columns import json_rows
from controlplane.sinks.destination import DestinationAway, RefusedByDestination, SinkContext
from controlplane.sinks.kinds.settings import HttpSettings
from controlplane.wire.network.secrets import SecretOf, named_secret


def check_destination(settings: HttpSettings) -> None:
    """Raise `Invalid` unless the URL is public or in the list of the site."""
    try:
        outbound.resolved(settings.url)
    except (outbound.AddressRejected, outbound.AddressUnreachable) as refusal:
        raise Invalid({"settings.url": [str(refusal)]}) from None


def open_destination(settings: HttpSettings, context: SinkContext) -> "HttpReceiver":
    """Return the receiver; each request has a connection of its own."""
    return HttpReceiver(settings, context, named_secret(SecretOf.SINKS, settings.secret).encode())


class HttpReceiver:
    """A receiver of batches."""

    def __init__(self, settings: HttpSettings, context: SinkContext, key: bytes) -> None:
        self._settings, self._context, self._key = settings, context, key

    def position(self) -> FeedPlace | None:
        """Return None: the receiver keeps no position."""
        return None

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Send rows in one request."""
        if rows:
            self._send(rows)

    def close(self) -> None:
        """Do nothing."""

    def _send(self, rows: Sequence[tuple[Any, ...]]) -> None:
        context = self._context
        content = {
            "cluster": context.cluster, "query": context.table.query, "sink": context.name,
            "rows": json_rows(context.table.columns, rows),
        }  # fmt: skip
        body = pydantic_core.to_json(content).decode()
        # The same for a repetition of the same rows.
        identifier = f"{context.uid}-{context.epoch}-{rows[0][-1]}-{rows[-1][-1]}-{len(rows)}"
        headers = {"Content-Type": "application/json", "User-Agent": "Weir-Sinks/1",
                   "Idempotency-Key": identifier}  # fmt: skip
        headers |= signature_headers(self._key, identifier, body, timezone.now())
        try:
            target = outbound.resolved(self._settings.url)
            status, answer = outbound.post(target, headers, body.encode())
        except (outbound.AddressRejected, outbound.AddressUnreachable) as error:
            raise DestinationAway(str(error)) from error
        if status in outbound.REFUSALS:
            raise RefusedByDestination(f"{status}: {answer}")
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise DestinationAway(f"{status}: {answer}")
