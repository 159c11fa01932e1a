"""The shedding planner: ladders of drop rules, their arming, reports, history and drills."""
