"""Planners that live in the tests only, installed as a distribution of their own.

A process that has this folder on its path finds them by the entry points of the distribution.
"""
