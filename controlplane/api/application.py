"""The Ninja application: routers, decorators of all responses, and error handlers."""

from django.contrib.auth.decorators import login_required

from controlplane.api import comparisons, executions, proposals
from controlplane.api.access import audit, me, tokens
from controlplane.api.clusters import health, stuck_batch, versions
from controlplane.api.clusters import routes as clusters
from controlplane.api.common.conditional import conditional
from controlplane.api.common.idempotency import idempotent
from controlplane.api.common.openapi import DocumentedAPI
from controlplane.api.common.problems import translate_errors
from controlplane.api.common.security import AUTHENTICATION
from controlplane.api.integrations import attached, webhooks
from controlplane.api.lab import routes as lab
from controlplane.api.policies import routes as policies
from controlplane.api.queries import edges, feed
from controlplane.api.queries import routes as queries
from controlplane.api.streams import dead_letters, records, stream_schemas
from controlplane.api.streams import routes as streams

api = DocumentedAPI(
    title="Weir",
    version="1",
    description=(
        "Clusters, streams, queries, proposals and the Lab. Times are UTC, ISO 8601. Lists go on"
        " at the cursor that their `next` or their Link header names; a POST can be repeated"
        " safely with an Idempotency-Key; every refusal is problem details (RFC 9457)."
    ),
    auth=AUTHENTICATION,
    urls_namespace="api",
    docs_decorator=login_required,
)
translate_errors(api)
# "view": around authentication and validation, where the request is still as it came.
api.add_decorator(conditional, mode="view")
api.add_decorator(idempotent, mode="view")
api.add_router("/me", me.router)
api.add_router("/tokens", tokens.router)
api.add_router("/webhooks", webhooks.router)
api.add_router("/audit", audit.router)
api.add_router("/clusters", clusters.router)
api.add_router("/clusters", health.router)
api.add_router("/clusters", stuck_batch.router)
api.add_router("/clusters", streams.router)
api.add_router("/clusters", stream_schemas.router)
api.add_router("/clusters", dead_letters.router)
api.add_router("/clusters", records.router)
api.add_router("/clusters", queries.router)
api.add_router("/clusters", feed.router)
api.add_router("/clusters", edges.router)
api.add_router("/clusters", proposals.router)
api.add_router("/clusters", comparisons.router)
api.add_router("/clusters", executions.router)
api.add_router("/clusters", policies.router)
api.add_router("/clusters", versions.router)
api.add_router("/lab", lab.router)
api.add_router("/attached", attached.router)
