"""A whole cluster as one document: what it holds, how it is read and written, plans for it.

Nothing here touches the database: a site can plan for a cluster that Weir does not run.
"""
