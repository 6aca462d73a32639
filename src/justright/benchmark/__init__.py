"""Suites: many problems, settings and seeds by one runner, and the tables made from their results."""
