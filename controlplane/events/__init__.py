"""Events of a cluster, and tasks of workers: what is sent after a commit."""
