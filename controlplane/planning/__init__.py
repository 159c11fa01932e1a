"""Plans for clusters: snapshots, measures, adapters of planners, order and cost of actions."""
