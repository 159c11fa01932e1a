"""Whatever a page can change, the API can change: an operation for every action of a page."""

from typing import Final

import pytest

from tests.controlplane.api.authorisation import rules
from tests.controlplane.api.authorisation.addresses import accepts_get, pages

pytestmark = pytest.mark.django_db
# Sessions and passwords belong to browsers; the other pages only have a form of an action below.
BROWSER_ONLY: Final = {
    "logout", "confirm", "password-change", "session-end", "sessions-end",
    "tour-start", "tour-dismiss",
    "second-factor-start", "second-factor-confirm", "second-factor-remove",
}  # fmt: skip
OPERATION_OF: Final = {
    "demo-add": "clusters_lifecycle_add_demo",
    "cluster-create": "clusters_lifecycle_add_cluster",
    "alert-acknowledge": "alerts_acknowledge_alert",
    "alert-silence": "alerts_silence_alert",
    "alert-withdraw": "alerts_withdraw_alert",
    "skip-batch": "clusters_health_skip_batch",
    "scenario-start": "clusters_scenarios_start_scenario",
    "scenario-end": "clusters_scenarios_end_scenario",
    "cluster-start": "clusters_routes_start_cluster",
    "cluster-stop": "clusters_routes_stop_cluster",
    "incident-decide": "clusters_health_decide_incident",
    "cluster-master": "clusters_routes_set_master",
    "cluster-nodes": "clusters_routes_set_nodes",
    "cluster-limits": "clusters_routes_set_batch_limits",
    "node-capacity": "clusters_routes_change_node",
    "dead-letters-replay": "streams_dead_letters_replay_dead_letters",
    "dead-letters-delete": "streams_dead_letters_delete_dead_letters",
    "split-capacity": "streams_admission_declare_split_capacity",
    "stream-characteristics": "streams_admission_declare_characteristics",
    "stream-redirect": "streams_admission_redirect_stream",
    "stream-produce": "streams_messages_produce_message",
    "stream-append": "streams_records_append_records",
    "stream-append-sample": "streams_records_append_records",
    "stream-token": "access_make_token",
    "stream-delete": "streams_routes_delete_stream",
    "drop-set": "queries_edges_set_drop_rule",
    "drop-lift": "queries_edges_remove_drop_rule",
    "query-check": "queries_routes_check_query",
    "stream-coordinates": "streams_maps_declare_coordinates",
    "query-preview": "queries_drafts_preview_query",
    "query-preview-cancel": "queries_drafts_cancel_preview",
    "query-explain": "queries_drafts_explain_query",
    "query-end": "queries_routes_end_queries",
    "query-move": "manual_plans_request_moves",
    "query-restore": "queries_bulk_restore_queries",
    "bulk-restore": "queries_bulk_restore_action",
    "bulk-cancel": "queries_bulk_cancel_action",
    "sql-login": "queries_sql_create_login",
    "query-retention": "queries_edges_set_retention",
    "query-key-grouping": "queries_edges_set_key_grouping",
    "query-task-count": "queries_edges_set_task_count",
    "query-aggregator-count": "queries_edges_set_aggregator_count",
    "query-aggregator": "queries_edges_set_aggregator",
    "comparison-ask": "comparisons_request_comparison",
    "comparison-cancel": "comparisons_cancel_comparison",
    "proposal-without": "comparisons_leave_out_actions",
    "proposal-ask": "proposals_request_proposal",
    "request-again": "proposals_request_again",
    "comment-add": "proposal_comments_add_comment",
    "proposal-reason": "proposal_comments_add_reason",
    "explain-request": "proposals_request_proposal",
    "proposal-verb": "proposals_approve_proposal",
    "policy-change": "policies_change_policy",
    "policy-revert": "policies_change_policy",
    "blackout-add": "policies_add_blackout",
    "blackout-remove": "policies_remove_blackout",
    "exclusion-add": "policies_add_exclusion",
    "exclusion-remove": "policies_remove_exclusion",
    "shedding-arm": "clusters_shedding_arm_ladder",
    "shedding-disarm": "clusters_shedding_disarm_ladder",
    "shedding-activate": "clusters_shedding_activate_rung",
    "shedding-release": "clusters_shedding_release_rung",
    "shedding-weights": "queries_edges_set_shedding",
    "lab-cancel": "lab_cancel_run",
    "lab-again": "lab_run_again",
    "lab-delete": "lab_delete_run",
    "lab-change": "lab_change_run",
    "view-save": "saved_views_save_view",
    "view-change": "saved_views_change_view",
    "view-delete": "saved_views_delete_view",
    "attached-remove": "integrations_attached_remove_job",
    "token-make": "access_make_token",
    "audit-verify": "access_verify_audit",
    "grant-set": "grants_grant_on_cluster",
    "grant-revoke": "grants_revoke_on_cluster",
    "user-sessions-end": "users_end_sessions",
    "user-factor-remove": "users_remove_second_factor",
    "token-revoke": "access_revoke_token",
    "sink-add": "queries_sinks_add_sink",
    "sink-remove": "queries_sinks_remove_sink",
    "sink-replay": "queries_sinks_replay_sink",
    "sink-pause": "queries_sinks_pause_sink",
    "sink-resume": "queries_sinks_resume_sink",
    "sink-retry": "queries_sinks_retry_sink",
    "sink-replay-refused": "queries_sinks_replay_refused_results",
    "sink-delete-refused": "queries_sinks_delete_refused_results",
    "webhook-add": "integrations_webhooks_make_webhook",
    "webhook-change": "integrations_webhooks_change_webhook",
    "webhook-switch": "integrations_webhooks_change_webhook",
    "webhook-secret": "integrations_webhooks_renew_secret",
    "webhook-test": "integrations_webhooks_test_webhook",
    "webhook-remove": "integrations_webhooks_remove_webhook",
    "webhook-again": "integrations_webhooks_send_again",
}


def test_every_action_of_a_page_has_an_operation() -> None:
    """With the same role as the page."""
    actions = {
        address.name
        for address in pages()
        if address.method == "get" and not accepts_get(address.path)
    }
    assert actions - BROWSER_ONLY == set(OPERATION_OF)
    apart = {"token-make", "webhook-add", "proposal-verb", "user-factor-remove", "stream-token",
             "stream-append", "stream-append-sample", "sql-login"}  # fmt: skip
    for page, operation in OPERATION_OF.items():
        assert page in apart or rules.PAGES[page] == rules.OPERATIONS[operation], page
