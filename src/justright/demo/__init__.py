"""The demo: an embedded problem, and runs on it that show what the library does."""
