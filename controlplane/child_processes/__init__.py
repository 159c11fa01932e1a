"""Child processes: how they start, their limits, how whole trees of them end, what a kill leaves.

Every child of Weir starts here, in one of three ways: as a program (`start.spawn`), as a fork of
this process (`fork.forked`), or as a fork of a server that has no threads (`pool.ChildPool`).
"""
