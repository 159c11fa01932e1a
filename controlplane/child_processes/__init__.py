"""Child processes: how they start, their limits, how whole trees of them end, what a kill leaves.

Every child of Weir starts here: as a program (`start.spawn`), as a fork of this process
(`fork.forked`), of a server that has no threads (`pool.ChildPool`), or of a process that has loaded
what many need (`preload.Preloaded`).
"""
