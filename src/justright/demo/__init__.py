"""The embedded problem and the runs that show what the library does."""
