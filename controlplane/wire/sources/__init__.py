"""Sources of streams besides the log of a cluster: what all declarations have, and their kinds."""
