"""The Lab's part of the planners: experiments, claims, workloads, and what plans files only.

Nothing outside of packages named `lab` imports it, and Weir runs without it.
"""
