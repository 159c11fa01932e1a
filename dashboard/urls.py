"""URLs of the pages; names are used by {% url %} and redirects."""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path

from controlplane.installation.extras import lab_values
from controlplane.planning.adapters import planner_modules
from dashboard import access, grants, site, system
from dashboard.account import confirmation, login, second_factor
from dashboard.account import views as account
from dashboard.audit import views as audit
from dashboard.clusters import charts as cluster_charts
from dashboard.clusters import incidents, node_rows, tour
from dashboard.clusters import parts as cluster_parts
from dashboard.clusters import scenarios as cluster_scenarios
from dashboard.clusters import views as clusters
from dashboard.explain import views as explain
from dashboard.fleet import alerts, creation, imports
from dashboard.fleet import views as fleet
from dashboard.integrations import attached, webhooks
from dashboard.lists import views as lists
from dashboard.nodes import views as nodes
from dashboard.palette import views as palette
from dashboard.policies import views as policies
from dashboard.proposals import comments, comparisons, effects, ledger, trade
from dashboard.proposals import detail as proposal
from dashboard.proposals import detail as proposal_actions
from dashboard.proposals import listing as proposals
from dashboard.queries import bulk, changes, keys, sinks, statements, submission
from dashboard.queries import views as queries
from dashboard.streams import admission, dead_letters, first_records, maps, messages, stream_schema
from dashboard.streams import detail as stream_detail
from dashboard.streams import views as streams

_lists: list[URLPattern] = [
    path("audit/", audit.index, name="audit"),
    path("audit/verify/", audit.verify, name="audit-verify"),
    path("lists/<slug:name>/rows/", lists.site_file, name="list-file"),
    path("views/save/", lists.save, name="view-save"),
    path("views/<int:pk>/change/", lists.change, name="view-change"),
    path("views/<int:pk>/delete/", lists.delete, name="view-delete"),
]
_cluster: list[URLPattern] = [
    path("lists/<slug:name>/rows/", lists.cluster_file, name="cluster-list-file"),
    path("", clusters.overview, name="cluster"),
    path("charts.json", cluster_charts.charts, name="cluster-charts"),
    path("summary/", cluster_parts.summary, name="cluster-summary"),
    path("cards/", cluster_parts.cards, name="cluster-cards"),
    path("strip/", cluster_parts.strip, name="cluster-strip"),
    path("flow/", cluster_parts.flow, name="cluster-flow"),
    path("node-list/", cluster_parts.nodes, name="cluster-node-list"),
    path("nodes.csv", node_rows.nodes_csv, name="cluster-nodes-csv"),
    path("stuck-batch/", incidents.stuck_batch_page, name="stuck-batch"),
    path("stuck-batch/skip/", incidents.skip, name="skip-batch"),
    path("start/", clusters.set_desired_state, {"verb": "start"}, name="cluster-start"),
    path("stop/", clusters.set_desired_state, {"verb": "stop"}, name="cluster-stop"),
    path("incidents/<int:pk>/decide/", incidents.decide, name="incident-decide"),
    path("master/", clusters.set_master, name="cluster-master"),
    path("nodes/", clusters.set_nodes, name="cluster-nodes"),
    path("limits/", clusters.set_limits, name="cluster-limits"),
    path("tour/", tour.show, name="tour"),
    path("tour/start/", tour.start, name="tour-start"),
    path("tour/dismiss/", tour.dismiss, name="tour-dismiss"),
    path("scenarios/start/", cluster_scenarios.start, name="scenario-start"),
    path("scenarios/<int:pk>/end/", cluster_scenarios.end, name="scenario-end"),
    path("nodes/<int:index>/capacity/", clusters.set_capacity, name="node-capacity"),
    path("nodes/<int:index>/form/", clusters.capacity_form, name="node-form"),
]
_alerts: list[URLPattern] = [
    path("actions/", fleet.actions, name="cluster-actions"),
    path("alerts/<int:pk>/", alerts.detail, name="alert"),
    path("alerts/<int:pk>/acknowledge/", alerts.acknowledge, name="alert-acknowledge"),
    path("alerts/<int:pk>/silence/", alerts.silence, name="alert-silence"),
    path("alerts/<int:pk>/withdraw/", alerts.withdraw, name="alert-withdraw"),
    path("alerts/<int:pk>/silence/form/", alerts.silence_form, name="alert-silence-form"),
    path("alerts/<int:pk>/note/form/", alerts.note_form, name="alert-note-form"),
]
_explain: list[URLPattern] = [
    path("explain/", explain.index, name="explain"),
    path("explain/request/", explain.request_plan, name="explain-request"),
    path("nodes/<int:index>/", nodes.detail, name="node"),
    path("nodes/<int:index>/live/", nodes.live, name="node-live"),
    path("nodes/<int:index>/charts.json", nodes.charts, name="node-charts"),
    path("nodes/<int:index>/tasks.csv", nodes.tasks_csv, name="node-tasks-csv"),
]
_streams: list[URLPattern] = [
    path("streams/", streams.index, name="streams"),
    path("streams/suggest/", streams.suggest, name="stream-suggest"),
    path("streams/new/", stream_schema.new, name="stream-new"),
    path("streams/<int:pk>/schema/", stream_schema.change, name="stream-schema"),
    path(
        "streams/<int:pk>/schema/preview/",
        stream_schema.preview_change,
        name="stream-schema-preview",
    ),
    path("dead-letters/", dead_letters.index, name="dead-letters"),
    path("dead-letters/export/", dead_letters.export, name="dead-letters-export"),
    path("dead-letters/replay/", dead_letters.replay, name="dead-letters-replay"),
    path("dead-letters/delete/", dead_letters.delete, name="dead-letters-delete"),
    path("streams/<int:pk>/", stream_detail.detail, name="stream"),
    path("streams/<int:pk>/messages/", messages.index, name="stream-messages"),
    path("streams/<int:pk>/produce/", messages.write, name="stream-produce"),
    path("streams/<int:pk>/live/", stream_detail.live, name="stream-live"),
    path("streams/<int:pk>/map/", maps.stream, name="stream-map"),
    path("streams/<int:pk>/coordinates/", maps.set_stream_coordinates, name="stream-coordinates"),
    path("queries/<int:pk>/map/", maps.query, name="query-map"),
    path("streams/what-if/", admission.what_if, name="stream-what-if"),
    path("streams/split-nodes/", admission.list_split_nodes, name="split-nodes"),
    path("streams/split-capacity/", admission.set_split_capacity, name="split-capacity"),
    path("streams/<int:pk>/charts/", stream_detail.charts, name="stream-charts"),
    path(
        "streams/<int:pk>/characteristics/",
        admission.declare_characteristics,
        name="stream-characteristics",
    ),
    path("streams/<int:pk>/redirect/", admission.redirect_stream, name="stream-redirect"),
    path("streams/<int:pk>/append/", first_records.append_file, name="stream-append"),
    path("streams/<int:pk>/append-sample/", first_records.append_kept, name="stream-append-sample"),
    path("streams/<int:pk>/token/", first_records.make_token, name="stream-token"),
    path("streams/<int:pk>/delete/", streams.delete, name="stream-delete"),
    path("streams/<int:pk>/drops/", streams.list_drop_rules, name="stream-drops"),
    path("streams/<int:pk>/drops/set/", streams.set_drop, name="drop-set"),
    path("streams/<int:pk>/drops/lift/", streams.lift_drop, name="drop-lift"),
]
_sink: list[URLPattern] = [
    path("remove/", sinks.remove, name="sink-remove"),
    path("replay/", sinks.replay, name="sink-replay"),
    path("pause/", sinks.pause, name="sink-pause"),
    path("resume/", sinks.resume, name="sink-resume"),
    path("retry/", sinks.retry, name="sink-retry"),
    path("refused/replay/", sinks.replay_refused, name="sink-replay-refused"),
    path("refused/delete/", sinks.delete_refused, name="sink-delete-refused"),
]
_queries: list[URLPattern | URLResolver] = [
    path("queries/", queries.index, name="queries"),
    path("queries/new/", submission.new, name="query-new"),
    path("queries/check/", submission.check, name="query-check"),
    path("queries/preview/", submission.preview, name="query-preview"),
    path("queries/preview/cancel/", submission.cancel_preview, name="query-preview-cancel"),
    path("queries/explain/", submission.explain, name="query-explain"),
    path("queries/end/", bulk.end, name="query-end"),
    path("queries/move/", bulk.move, name="query-move"),
    path("queries/restore/", bulk.restore_named, name="query-restore"),
    path("bulk-actions/<int:pk>/", bulk.show, name="bulk-action"),
    path("bulk-actions/<int:pk>/restore/", bulk.restore, name="bulk-restore"),
    path("bulk-actions/<int:pk>/cancel/", bulk.cancel, name="bulk-cancel"),
    path("queries/<int:pk>/", queries.detail, name="query"),
    path("queries/<int:pk>/results/", queries.results, name="query-results"),
    path("queries/<int:pk>/live/", queries.live, name="query-live"),
    path("queries/<int:pk>/charts.json", queries.charts, name="query-charts"),
    path("results/", statements.index, name="sql"),
    path("results/file/", statements.file, name="sql-file"),
    path("results/login/", statements.login, name="sql-login"),
    path("queries/<int:pk>/keys/", keys.index, name="query-keys"),
    path("queries/<int:pk>/keys/live/", keys.live, name="query-keys-live"),
    path("queries/<int:pk>/keys/groupings/", keys.groupings, name="query-keys-groupings"),
    path("queries/<int:pk>/keys/history/", keys.history, name="query-keys-history"),
    path("queries/<int:pk>/keys/charts.json", keys.charts, name="query-keys-charts"),
    path("queries/<int:pk>/sinks/", sinks.index, name="query-sinks"),
    path("queries/<int:pk>/sinks/add/", sinks.add, name="sink-add"),
    path("queries/<int:pk>/sinks/<str:sink>/", include(_sink)),
    path("queries/<int:pk>/retention/", changes.set_retention, name="query-retention"),
    path("queries/<int:pk>/key-grouping/", changes.set_key_grouping, name="query-key-grouping"),
    path("queries/<int:pk>/tasks/", changes.set_task_count, name="query-task-count"),
    path(
        "queries/<int:pk>/aggregators/",
        changes.set_aggregator_count,
        name="query-aggregator-count",
    ),
    path("queries/<int:pk>/aggregator/", changes.set_aggregator, name="query-aggregator"),
]
_proposals: list[URLPattern] = [
    path("proposals/", proposals.index, name="proposals"),
    path("proposals/form/", proposals.form, name="proposal-form"),
    path("proposals/ask/", proposals.ask, name="proposal-ask"),
    path("proposals/trade/", trade.index, name="proposal-trade"),
    path("proposals/<int:pk>/", proposal.detail, name="proposal"),
    path("proposals/<int:pk>/charts.json", proposal.charts, name="proposal-charts"),
    path("proposals/<int:pk>/steps.json", proposal.step_charts, name="step-charts"),
    path("proposals/<int:pk>/proof.json", proposal.proof_charts, name="proof-charts"),
    path("proposals/<int:pk>/actions/", proposal_actions.index, name="proposal-actions"),
    path("proposals/<int:pk>/actions.json", proposal_actions.actions_json, name="actions-json"),
    path("proposals/<int:pk>/actions.csv", proposal_actions.actions_csv, name="actions-csv"),
    path("proposals/<int:pk>/comments/", comments.index, name="proposal-comments"),
    path("proposals/<int:pk>/comments/add/", comments.add, name="comment-add"),
    path("proposals/<int:pk>/reason/", comments.add_reason, name="proposal-reason"),
    path("proposals/<int:pk>/request-again/", proposals.request_again, name="request-again"),
    # Last, as it matches every verb.
    path("proposals/<int:pk>/<slug:verb>/", proposals.apply_verb, name="proposal-verb"),
]
_comparisons: list[URLPattern] = [
    path("compare/", comparisons.index, name="comparisons"),
    path("compare/ask/", comparisons.ask, name="comparison-ask"),
    path("compare/<int:pk>/", comparisons.detail, name="comparison"),
    path("compare/<int:pk>/charts.json", comparisons.charts, name="comparison-charts"),
    path("compare/<int:pk>/cancel/", comparisons.cancel, name="comparison-cancel"),
    # Before the verbs of proposals, as "effects" and "without" are not verbs.
    path("proposals/<int:pk>/effects/", effects.index, name="proposal-effects"),
    path("proposals/<int:pk>/without/", effects.drop, name="proposal-without"),
    path("ledger/", ledger.index, name="ledger"),
    path("ledger/charts.json", ledger.charts, name="ledger-charts"),
]
_policies: list[URLPattern] = [
    path("policy/", policies.index, name="policy"),
    path("policy/change/", policies.change, name="policy-change"),
    path("policy/changes/<int:pk>/revert/", policies.revert, name="policy-revert"),
    path("blackouts/add/", policies.blackout_add, name="blackout-add"),
    path("blackouts/<int:pk>/remove/", policies.blackout_remove, name="blackout-remove"),
    path("exclusions/add/", policies.exclusion_add, name="exclusion-add"),
    path("exclusions/<int:pk>/remove/", policies.exclusion_remove, name="exclusion-remove"),
    path("decisions/", policies.decisions, name="decisions"),
]
_planners: list[URLPattern] = [
    pattern for module in planner_modules("pages", "dashboard.planners") for pattern in module.URLS
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
    path("webhooks/<int:pk>/messages/<int:delivery>/again/", webhooks.again, name="webhook-again"),
]

_account: list[URLPattern] = [
    path("login/", login.PasswordLogin.as_view(), name="login"),
    path("login/code/", login.enter_code, name="login-code"),
    path("login/second-factor/", login.set_up_factor, name="login-factor"),
    path("login/sso/", login.start_single_sign_on, name="sso"),
    path("login/sso/callback/", login.finish_single_sign_on, name="sso-callback"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("account/", account.show, name="account"),
    path("account/confirm/", confirmation.confirm, name="confirm"),
    path("account/password/", account.change_password, name="password-change"),
    path("account/sessions/end-one/", account.end_session, name="session-end"),
    path("account/sessions/end/", account.end_all_sessions, name="sessions-end"),
    path("account/second-factor/", second_factor.show, name="second-factor"),
    path("account/second-factor/start/", second_factor.start, name="second-factor-start"),
    path("account/second-factor/confirm/", second_factor.confirm, name="second-factor-confirm"),
    path("account/second-factor/remove/", second_factor.remove, name="second-factor-remove"),
]

_CLUSTER = [
    *_cluster, *_alerts, *_explain, *_streams, *_queries, *_comparisons, *_proposals, *_policies,
    *_planners,
]  # fmt: skip

urlpatterns: list[URLPattern | URLResolver] = [
    path("", fleet.overview, name="fleet"),
    path("navigation/", fleet.navigation_status, name="navigation-status"),
    path("create/", creation.create, name="cluster-create"),
    path("import/", imports.import_page, name="cluster-import"),
    path("demo/<slug:name>/", creation.post_demo, name="demo-add"),
    path("alerts/", alerts.history, name="alerts"),
    path("clusters/<slug:slug>/", include(_CLUSTER)),
    *lab_values("dashboard.lab.urls:urlpatterns"),
    *_attached,
    *_lists,
    path("grants/", grants.list_grants, name="grants"),
    path("grants/set/", grants.set_grant, name="grant-set"),
    path("grants/revoke/", grants.revoke_grant, name="grant-revoke"),
    path("users/end-sessions/", grants.end_sessions, name="user-sessions-end"),
    path("users/remove-second-factor/", grants.remove_factor, name="user-factor-remove"),
    path("tokens/", access.list_tokens, name="tokens"),
    path("tokens/make/", access.make_token, name="token-make"),
    path("tokens/<int:pk>/revoke/", access.revoke_token, name="token-revoke"),
    *_webhooks,
    path("system/", system.system_health, name="system"),
    path("system/storage/", system.system_storage, name="system-storage"),
    path("system/banner/", system.system_banner, name="system-banner"),
    path("help/", site.help_page, name="help"),
    path("search/", palette.index, name="search"),
    *_account,
]
