"""Small modules that every package may use: errors, files, locks, parallel work, seeds, settings, types."""
