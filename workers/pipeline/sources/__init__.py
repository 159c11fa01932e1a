"""The sources of a cluster, its log among them: `cluster_sources.ClusterSources`."""
