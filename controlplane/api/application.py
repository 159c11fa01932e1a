"""The Ninja application: routers, decorators of all responses, and error handlers."""

from controlplane.api import (
    access,
    alerts,
    comparisons,
    executions,
    explanations,
    grants,
    manual_plans,
    planners,
    policies,
    proposal_comments,
    proposals,
    saved_views,
    storage,
    users,
)
from controlplane.api import health as site_health
from controlplane.api.clusters import fleet, health, lifecycle, scenarios, shedding
from controlplane.api.clusters import routes as clusters
from controlplane.api.common.decorators import conditional, idempotent
from controlplane.api.common.json_bodies import BoundedParser
from controlplane.api.common.openapi import ApiReference, DocumentedAPI
from controlplane.api.common.problems import translate_errors
from controlplane.api.common.security import open_to, readable_with_token
from controlplane.api.common.strictness import (
    accept_absent_bodies,
    known_parameters_only,
    require_strict_bodies,
)
from controlplane.api.integrations import attached, webhooks
from controlplane.api.queries import bulk, drafts, edges, feed, keys, sinks, sql
from controlplane.api.queries import routes as queries
from controlplane.api.streams import (
    admission,
    dead_letters,
    maps,
    messages,
    records,
    stream_schemas,
    topics,
)
from controlplane.api.streams import routes as streams
from controlplane.clusters.audiences import by_default
from controlplane.installation.extras import lab_values

api = DocumentedAPI(
    title="Weir",
    version="1",
    description=(
        "Clusters, streams, queries, proposals and the Lab. Times are UTC, ISO 8601. Lists go on"
        " at the cursor that their `next` or their Link header names; a POST can be repeated"
        " safely with an Idempotency-Key; every refusal is problem details (RFC 9457)."
    ),
    auth=open_to(by_default),
    urls_namespace="api",
    docs=ApiReference(),
    docs_decorator=readable_with_token,
    parser=BoundedParser(),
)
translate_errors(api)
# The innermost first. "view": around authentication and validation, where the request is still as
# it came.
api.add_decorator(known_parameters_only, mode="view")
api.add_decorator(conditional, mode="view")
api.add_decorator(idempotent, mode="view")
api.add_router("/me", access.me)
api.add_router("/health", site_health.router)
api.add_router("/storage", storage.router)
api.add_router("/tokens", access.tokens_router)
api.add_router("/webhooks", webhooks.router)
api.add_router("/audit", access.audit)
api.add_router("/grants", grants.router)
api.add_router("/users", users.router)
api.add_router("/views", saved_views.router)
api.add_router("/clusters", grants.of_cluster)
api.add_router("/alerts", alerts.router)
api.add_router("/clusters", alerts.of_cluster)
api.add_router("/fleet", fleet.router)
for _module in (
    # `streams` and `queries` after the routers with fixed names in the place of their rows' names.
    clusters, health, shedding, admission, stream_schemas, maps, topics, messages, streams,
    dead_letters,
    records, bulk, drafts, queries, feed, keys, edges, sql, sinks, planners, proposal_comments,
    proposals,
    manual_plans, comparisons, executions, policies, explanations,
):  # fmt: skip
    api.add_router("/clusters", _module.router)
api.add_router("/demos", lifecycle.demos)
api.add_router("/clusters", scenarios.router)
api.add_router("/descriptions", lifecycle.descriptions)
api.add_router("/key-groupings", edges.groupings)
for _path, _router in lab_values("controlplane.lab.api:ROUTERS"):
    api.add_router(_path, _router)
api.add_router("/attached", attached.router)
require_strict_bodies(api)
accept_absent_bodies(api)
