"""A cluster as one document: its format, validation, export, application and planning."""
