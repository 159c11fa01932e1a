"""Who may call each operation, page and socket: one rule for each, written by hand.

A new address without a rule here fails the matrix. The audience of a rule is the least that a
caller needs: nothing (anyone), a login (person), a role on any cluster (member), a session instead
of a token (session), the role admin on any cluster (any admin), or a role: on the cluster that the
address names, else on all clusters. `<page>:post` is the rule of POST of a page with a form.
"""

from collections.abc import Mapping
from typing import Final


def _rules(audiences: Mapping[str, str]) -> dict[str, str]:
    return {name: audience for audience, names in audiences.items() for name in names.split()}


OPERATIONS: Final = _rules(
    {
        "member": """
        access_get_caller health_get_site_health storage_get_storage access_list_tokens
        access_revoke_token
        saved_views_list_views saved_views_save_view saved_views_change_view
        saved_views_delete_view
        access_list_audit access_get_verification alerts_list_alerts clusters_routes_list_clusters
        clusters_fleet_list_fleet
        queries_edges_list_key_groupings
        lab_list_experiments lab_get_experiment lab_list_runs lab_estimate_run lab_list_queue
        lab_get_run lab_get_table lab_get_claims lab_compare_runs lab_export_run
        """,
        "session": """
        access_make_token users_remove_second_factor queries_sql_create_login
        """,
        "viewer": """
        alerts_get_alert explanations_get_explanation
        clusters_routes_get_cluster clusters_routes_list_nodes clusters_routes_list_samples
        clusters_routes_get_sample streams_admission_get_characteristics
        clusters_routes_list_versions clusters_routes_get_version
        clusters_lifecycle_export_cluster clusters_health_get_health
        clusters_lifecycle_get_description_status
        clusters_health_get_incident clusters_health_get_stuck_batch
        clusters_shedding_get_ladder clusters_shedding_list_intervals
        clusters_scenarios_list_scenarios
        clusters_shedding_list_episodes clusters_shedding_get_drill streams_routes_list_streams
        streams_routes_get_stream streams_admission_list_split_nodes
        streams_admission_list_redirections streams_admission_get_outlook
        queries_bulk_get_action streams_admission_admit_what_if streams_stream_schemas_get_schema
        streams_stream_schemas_preview_schema streams_dead_letters_list_dead_letters
        streams_dead_letters_export_dead_letters queries_routes_list_queries
        queries_routes_check_query queries_drafts_explain_query streams_maps_get_map
        streams_topics_get_topic
        queries_routes_get_query queries_routes_list_results
        queries_feed_follow_query queries_sql_list_views queries_sql_run_sql
        queries_sinks_list_sinks queries_sinks_get_sink queries_sinks_list_refused_results
        queries_keys_get_keys queries_edges_list_drop_rules
        planners_list_planners proposals_list_proposals proposals_estimate_proposal
        proposals_list_computing_queue proposals_get_proposal proposals_get_allowed
        proposals_list_actions proposals_get_drift proposal_comments_list_comments
        comparisons_list_comparisons
        comparisons_get_comparison comparisons_list_effects comparisons_list_ledger
        comparisons_get_calibration executions_running_execution executions_get_execution
        policies_get_policy policies_list_blackouts policies_list_exclusions policies_get_watch
        policies_list_decisions integrations_attached_report_events
        integrations_attached_list_jobs integrations_attached_get_query
        integrations_attached_list_progress
        """,
        "operator": """
        alerts_acknowledge_alert alerts_silence_alert alerts_withdraw_alert
        clusters_routes_start_cluster clusters_routes_stop_cluster
        clusters_scenarios_start_scenario clusters_scenarios_end_scenario
        clusters_routes_set_batch_limits clusters_routes_set_nodes clusters_routes_change_node
        clusters_shedding_arm_ladder clusters_shedding_disarm_ladder
        clusters_shedding_activate_rung clusters_shedding_release_rung
        streams_routes_register_streams streams_routes_delete_stream
        streams_admission_declare_split_capacity
        streams_admission_declare_characteristics streams_admission_redirect_stream
        streams_stream_schemas_put_schema streams_stream_schemas_change_schema
        streams_stream_schemas_infer_schema streams_dead_letters_replay_dead_letters
        streams_dead_letters_delete_dead_letters streams_records_append_records
        queries_routes_submit_query queries_routes_submit_queries
        queries_drafts_preview_query queries_drafts_cancel_preview
        streams_maps_declare_coordinates streams_topics_find_topics streams_topics_read_sample
        streams_messages_browse_messages streams_messages_produce_message
        queries_bulk_end_matching queries_bulk_restore_queries
        queries_bulk_restore_action queries_bulk_cancel_action
        queries_routes_end_queries queries_routes_end_query queries_edges_set_drop_rule
        queries_edges_remove_drop_rule queries_edges_set_key_grouping
        queries_edges_set_task_count queries_edges_set_aggregator
        queries_edges_set_aggregator_count queries_edges_set_retention
        queries_sinks_pause_sink queries_sinks_resume_sink queries_sinks_retry_sink
        queries_sinks_replay_refused_results queries_sinks_delete_refused_results
        queries_edges_set_shedding proposals_request_proposal proposals_request_again
        manual_plans_request_moves
        proposals_cancel_proposal proposals_begin_proposal proposals_pause_proposal
        proposals_resume_proposal proposals_finish_step_proposal proposals_stop_proposal
        proposals_roll_back_proposal proposal_comments_add_comment
        proposal_comments_add_reason comparisons_request_comparison
        comparisons_cancel_comparison comparisons_leave_out_actions policies_add_exclusion
        policies_remove_exclusion clusters_lifecycle_add_demo lab_request_run lab_delete_run
        lab_cancel_run lab_run_again lab_change_run integrations_attached_remove_job
        """,
        "approver": """
        proposals_approve_proposal proposals_reject_proposal proposals_withdraw_proposal
        """,
        "any admin": "integrations_webhooks_list_webhooks grants_list_grants",
        "admin": """
        clusters_routes_set_master streams_records_set_log
        queries_sinks_add_sink queries_sinks_change_sink queries_sinks_remove_sink
        queries_sinks_replay_sink
        integrations_webhooks_make_webhook integrations_webhooks_get_webhook
        integrations_webhooks_change_webhook integrations_webhooks_remove_webhook
        integrations_webhooks_renew_secret integrations_webhooks_test_webhook
        integrations_webhooks_list_deliveries integrations_webhooks_send_again
        clusters_lifecycle_add_cluster clusters_lifecycle_change_cluster
        clusters_lifecycle_remove_cluster clusters_health_decide_incident
        clusters_health_skip_batch policies_change_policy policies_add_blackout
        policies_remove_blackout clusters_lifecycle_apply_cluster access_verify_audit
        grants_grant_everywhere grants_revoke_everywhere grants_grant_on_cluster
        grants_revoke_on_cluster users_end_sessions
        """,
    }
)
PAGES: Final = _rules(
    {
        "anyone": "healthz readyz login login-code login-factor sso sso-callback",
        "person": """
        logout account confirm password-change session-end sessions-end second-factor
        second-factor-start second-factor-confirm second-factor-remove
        """,
        "member": """
        metrics fleet navigation-status alerts audit list-file view-save view-change view-delete
        tokens token-make token-revoke webhooks system system-storage
        system-banner help search
        """,
        "viewer": """
        cluster bulk-action cluster-list-file cluster-charts cluster-summary cluster-cards
        cluster-strip cluster-flow
        cluster-node-list cluster-nodes-csv
        cluster-actions alert tour explain query-live node node-live node-charts node-tasks-csv
        streams stream-suggest stream-schema dead-letters dead-letters-export stream
        stream-what-if stream-schema-preview split-nodes stream-live stream-map query-map
        stream-charts stream-drops queries query-check
        query-explain query
        query-results query-charts sql sql-file sql-login query-keys query-keys-live
        query-keys-groupings query-sinks
        query-keys-history query-keys-charts comparisons comparison comparison-charts
        proposal-effects ledger ledger-charts proposals proposal-form proposal proposal-charts
        step-charts proof-charts proposal-actions proposal-comments actions-json actions-csv
        policy decisions shedding shedding-live
        shedding-history shedding-ladder-csv shedding-kept-csv shedding-charts lab lab-run
        lab-charts lab-csv lab-json lab-html lab-svg lab-comparison lab-estimate
        lab-experiment lab-stored-charts lab-stored-csv lab-stored-json lab-stored-html
        lab-stored-svg attached attached-query attached-charts
        """,
        "operator": """
        alert-acknowledge alert-silence alert-withdraw alert-silence-form alert-note-form
        scenario-start scenario-end tour-start tour-dismiss
        explain-request demo-add cluster-start cluster-stop cluster-nodes cluster-limits
        node-capacity node-form stream-new dead-letters-replay dead-letters-delete split-capacity
        stream-messages stream-produce stream-characteristics stream-redirect stream-append
        stream-append-sample
        stream-token stream-delete drop-set drop-lift query-new
        stream-coordinates query-preview query-preview-cancel query-end
        query-restore query-move bulk-restore bulk-cancel
        query-retention query-key-grouping query-task-count query-aggregator-count
        query-aggregator sink-pause sink-resume sink-retry sink-replay-refused
        sink-delete-refused comparison-ask comparison-cancel proposal-without proposal-ask
        proposal-trade
        request-again proposal-verb comment-add proposal-reason exclusion-add exclusion-remove
        shedding-arm shedding-disarm
        shedding-activate shedding-release shedding-weights lab-cancel lab-again lab-change
        lab-delete attached-remove stream-schema:post
        """,
        "any admin": "webhook-add grants cluster-import",
        "admin": """
        sink-add sink-remove sink-replay
        cluster-create cluster-master stuck-batch skip-batch incident-decide policy-change
        policy-revert
        blackout-add blackout-remove webhook webhook-change webhook-switch webhook-secret
        webhook-test webhook-remove webhook-again audit-verify grant-set grant-revoke
        user-sessions-end user-factor-remove
        """,
    }
)
# By route; and what a socket does on a message of the browser (receive_json) or of a channel layer.
SOCKETS: Final = {"ws/clusters/<slug:slug>/": "viewer", "ws/fleet/": "member"}
SOCKET_MESSAGES: Final = {
    "receive_json": "member",
    "access_changed": "member",
    "cluster_sample": "viewer",
    "cluster_event": "viewer",
    "fleet_sample": "viewer",
    "fleet_event": "viewer",
}
