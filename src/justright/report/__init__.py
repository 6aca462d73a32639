"""What was found, for people: figures, tables and pages."""
