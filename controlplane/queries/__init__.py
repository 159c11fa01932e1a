"""What a query is: its fields, and its key grouping as columns, route and text."""
