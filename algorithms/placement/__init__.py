"""Placement of mice queries on servers so that shared streams are delivered to few of them.

Zong, Gkantsidis, Vojnovic: Servicing "mice"-streaming queries as a service, MSR-TR-2013-124
(papers/000_fefc682d150e9344.txt). A *source* there is a stream here, a *server* is a node.
"""
