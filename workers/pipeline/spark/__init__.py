"""The Spark session, its Python workers, and the partitions of nodes."""
