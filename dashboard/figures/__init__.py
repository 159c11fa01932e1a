"""Plotly figures: rows in, a figure as a plain dict out.

Colours are names of design tokens ("--chart-1"); static/js/theme.js inserts the values of the
light or dark theme. A live trace has in `meta` the field of a sample that it draws;
static/js/charts.js then replaces its data and nothing else.
"""
