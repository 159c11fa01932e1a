"""From a cluster to a plan: the snapshot, its measures, the planners' problems and their plans."""
