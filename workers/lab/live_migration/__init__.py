"""Figure 15 of paper 004 on a real pipeline: fewer nodes from the middle on, live or restarted."""
