"""The lists of the pages: their kinds, saved views, and exports."""
