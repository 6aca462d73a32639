"""Reports for people: figures, tables and HTML pages."""
