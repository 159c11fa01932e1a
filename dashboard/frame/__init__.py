"""What surrounds the content of pages: their headlines, and the keys of all pages."""
