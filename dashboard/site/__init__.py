"""Help and error pages."""
