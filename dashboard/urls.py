"""URLs of the pages; names are used by {% url %} and redirects."""

from django.urls import URLPattern, path

from dashboard.access import account, audit, tokens
from dashboard.clusters import fleet, health, size, stuck_batch
from dashboard.clusters import views as clusters
from dashboard.integrations import attached, webhooks
from dashboard.lab import tables
from dashboard.lab import views as lab
from dashboard.policies import views as policies
from dashboard.proposals import comparisons, effects, ledger
from dashboard.proposals import detail as proposal
from dashboard.proposals import listing as proposals
from dashboard.queries import key_grouping, retention, submission
from dashboard.queries import views as queries
from dashboard.site import help_page
from dashboard.streams import dead_letters, drop_rules, stream_schema
from dashboard.streams import views as streams

CLUSTER = "clusters/<slug:slug>/"

_cluster: list[URLPattern] = [
    path("demo/<slug:slug>/", fleet.post_demo, name="demo-add"),
    path(CLUSTER, clusters.overview, name="cluster"),
    path(f"{CLUSTER}charts.json", clusters.charts, name="cluster-charts"),
    path(f"{CLUSTER}aside/", clusters.aside, name="cluster-aside"),
    path(f"{CLUSTER}status/", clusters.status, name="cluster-status"),
    path(f"{CLUSTER}node-list/", clusters.node_list, name="cluster-node-list"),
    path(f"{CLUSTER}stuck-batch/", stuck_batch.detail, name="stuck-batch"),
    path(f"{CLUSTER}stuck-batch/skip/", stuck_batch.skip, name="skip-batch"),
    path(f"{CLUSTER}numbers/", clusters.numbers, name="cluster-numbers"),
    path(f"{CLUSTER}start/", clusters.want, {"verb": "start"}, name="cluster-start"),
    path(f"{CLUSTER}stop/", clusters.want, {"verb": "stop"}, name="cluster-stop"),
    path(f"{CLUSTER}incidents/<int:pk>/decide/", health.decide, name="incident-decide"),
    path(f"{CLUSTER}master/", clusters.master, name="cluster-master"),
    path(f"{CLUSTER}nodes/", size.set_nodes, name="cluster-nodes"),
    path(f"{CLUSTER}limits/", size.set_limits, name="cluster-limits"),
    path(f"{CLUSTER}nodes/<int:index>/capacity/", clusters.capacity, name="node-capacity"),
]
_streams: list[URLPattern] = [
    path(f"{CLUSTER}streams/", streams.index, name="streams"),
    path(f"{CLUSTER}streams/suggest/", streams.suggest, name="stream-suggest"),
    path(f"{CLUSTER}streams/new/", stream_schema.new, name="stream-new"),
    path(f"{CLUSTER}streams/<int:pk>/schema/", stream_schema.change, name="stream-schema"),
    path(f"{CLUSTER}dead-letters/", dead_letters.index, name="dead-letters"),
    path(f"{CLUSTER}dead-letters/export/", dead_letters.export, name="dead-letters-export"),
    path(f"{CLUSTER}dead-letters/replay/", dead_letters.replay, name="dead-letters-replay"),
    path(f"{CLUSTER}dead-letters/delete/", dead_letters.delete, name="dead-letters-delete"),
    path(f"{CLUSTER}streams/<int:pk>/", streams.detail, name="stream"),
    path(f"{CLUSTER}streams/<int:pk>/drops/", drop_rules.index, name="stream-drops"),
    path(f"{CLUSTER}streams/<int:pk>/drops/set/", drop_rules.set_drop, name="drop-set"),
    path(f"{CLUSTER}streams/<int:pk>/drops/lift/", drop_rules.lift, name="drop-lift"),
]
_queries: list[URLPattern] = [
    path(f"{CLUSTER}queries/", queries.index, name="queries"),
    path(f"{CLUSTER}queries/new/", submission.new, name="query-new"),
    path(f"{CLUSTER}queries/check/", submission.post_check, name="query-check"),
    path(f"{CLUSTER}queries/end/", queries.post_end, name="query-end"),
    path(f"{CLUSTER}queries/<int:pk>/", queries.detail, name="query"),
    path(f"{CLUSTER}queries/<int:pk>/results/", queries.results, name="query-results"),
    path(f"{CLUSTER}queries/<int:pk>/charts.json", queries.charts, name="query-charts"),
    path(f"{CLUSTER}queries/<int:pk>/retention/", retention.post_retention, name="query-retention"),
    path(
        f"{CLUSTER}queries/<int:pk>/key-grouping/",
        key_grouping.post_key_grouping,
        name="query-key-grouping",
    ),
    path(
        f"{CLUSTER}queries/<int:pk>/tasks/", key_grouping.post_task_count, name="query-task-count"
    ),
    path(
        f"{CLUSTER}queries/<int:pk>/aggregators/",
        key_grouping.post_aggregator_count,
        name="query-aggregator-count",
    ),
    path(
        f"{CLUSTER}queries/<int:pk>/aggregator/",
        key_grouping.post_aggregator,
        name="query-aggregator",
    ),
]
_proposals: list[URLPattern] = [
    path(f"{CLUSTER}proposals/", proposals.index, name="proposals"),
    path(f"{CLUSTER}proposals/form/", proposals.form, name="proposal-form"),
    path(f"{CLUSTER}proposals/ask/", proposals.ask, name="proposal-ask"),
    path(f"{CLUSTER}proposals/<int:pk>/", proposal.detail, name="proposal"),
    path(f"{CLUSTER}proposals/<int:pk>/charts.json", proposal.charts, name="proposal-charts"),
    path(f"{CLUSTER}proposals/<int:pk>/steps.json", proposal.step_charts, name="step-charts"),
    path(f"{CLUSTER}proposals/<int:pk>/actions.json", proposal.actions_json, name="actions-json"),
    path(f"{CLUSTER}proposals/<int:pk>/actions.csv", proposal.actions_csv, name="actions-csv"),
    path(
        f"{CLUSTER}proposals/<int:pk>/request-again/",
        proposals.request_again,
        name="request-again",
    ),
    # Last, as it matches every verb.
    path(f"{CLUSTER}proposals/<int:pk>/<slug:verb>/", proposals.apply_verb, name="proposal-verb"),
]
_comparisons: list[URLPattern] = [
    path(f"{CLUSTER}compare/", comparisons.index, name="comparisons"),
    path(f"{CLUSTER}compare/ask/", comparisons.ask, name="comparison-ask"),
    path(f"{CLUSTER}compare/<int:pk>/", comparisons.detail, name="comparison"),
    path(f"{CLUSTER}compare/<int:pk>/charts.json", comparisons.charts, name="comparison-charts"),
    path(f"{CLUSTER}compare/<int:pk>/cancel/", comparisons.cancel, name="comparison-cancel"),
    # Before the verbs of proposals, as "effects" and "without" are no verbs.
    path(f"{CLUSTER}proposals/<int:pk>/effects/", effects.index, name="proposal-effects"),
    path(f"{CLUSTER}proposals/<int:pk>/without/", effects.drop, name="proposal-without"),
    path(f"{CLUSTER}ledger/", ledger.index, name="ledger"),
    path(f"{CLUSTER}ledger/charts.json", ledger.charts, name="ledger-charts"),
]
_policies: list[URLPattern] = [
    path(f"{CLUSTER}policy/", policies.index, name="policy"),
    path(f"{CLUSTER}policy/change/", policies.change, name="policy-change"),
    path(f"{CLUSTER}blackouts/add/", policies.blackout_add, name="blackout-add"),
    path(
        f"{CLUSTER}blackouts/<int:pk>/remove/", policies.blackout_remove,
        name="blackout-remove",
    ),
    path(f"{CLUSTER}exclusions/add/", policies.exclusion_add, name="exclusion-add"),
    path(
        f"{CLUSTER}exclusions/<int:pk>/remove/", policies.exclusion_remove,
        name="exclusion-remove",
    ),
    path(f"{CLUSTER}decisions/", policies.decisions, name="decisions"),
]  # fmt: skip
_lab: list[URLPattern] = [
    path("lab/", lab.index, name="lab"),
    path("lab/runs/<int:pk>/", lab.detail, name="lab-run"),
    path("lab/runs/<int:pk>/charts.json", tables.charts, name="lab-charts"),
    path("lab/runs/<int:pk>/table.csv", tables.table_csv, name="lab-csv"),
    path("lab/runs/<int:pk>/table.json", tables.table_json, name="lab-json"),
    path("lab/runs/<int:pk>/figure.html", tables.figure_html, name="lab-html"),
    path("lab/runs/<int:pk>/cancel/", lab.cancel, name="lab-cancel"),
    path("lab/runs/<int:pk>/again/", lab.again, name="lab-again"),
    path("lab/runs/<int:pk>/delete/", lab.delete, name="lab-delete"),
    # Last, as "runs" is not a planner.
    path("lab/<slug:planner>/<slug:name>/", lab.experiment, name="lab-experiment"),
]

_attached: list[URLPattern] = [
    path("attached/", attached.index, name="attached"),
    path("attached/<int:pk>/remove/", attached.remove, name="attached-remove"),
    path("attached/queries/<int:pk>/", attached.detail, name="attached-query"),
    path("attached/queries/<int:pk>/charts.json", attached.charts, name="attached-charts"),
]

_webhooks: list[URLPattern] = [
    path("webhooks/", webhooks.index, name="webhooks"),
    path("webhooks/add/", webhooks.add, name="webhook-add"),
    path("webhooks/<int:pk>/", webhooks.detail, name="webhook"),
    path("webhooks/<int:pk>/change/", webhooks.change, name="webhook-change"),
    path("webhooks/<int:pk>/switch/", webhooks.switch, name="webhook-switch"),
    path("webhooks/<int:pk>/secret/", webhooks.renew_secret, name="webhook-secret"),
    path("webhooks/<int:pk>/test/", webhooks.test, name="webhook-test"),
    path("webhooks/<int:pk>/remove/", webhooks.remove, name="webhook-remove"),
    path(
        "webhooks/<int:pk>/messages/<int:delivery>/again/", webhooks.again,
        name="webhook-again",
    ),
]  # fmt: skip

urlpatterns: list[URLPattern] = [
    path("", fleet.overview, name="fleet"),
    *_cluster,
    *_streams,
    *_queries,
    *_comparisons,
    *_proposals,
    *_policies,
    *_lab,
    *_attached,
    path("audit/", audit.index, name="audit"),
    path("tokens/", tokens.get_index, name="tokens"),
    path("tokens/make/", tokens.make, name="token-make"),
    path("tokens/<int:pk>/revoke/", tokens.revoke, name="token-revoke"),
    *_webhooks,
    path("help/", help_page.index, name="help"),
    path("login/", account.Login.as_view(), name="login"),
    path("logout/", account.Logout.as_view(), name="logout"),
]
