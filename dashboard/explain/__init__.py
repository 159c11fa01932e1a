"""The panel and page that explain an exceeded limit."""
