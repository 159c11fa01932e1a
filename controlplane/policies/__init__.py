"""Policies: automatic approval, roles of approvers, blackouts and exclusions."""
