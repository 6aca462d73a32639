"""Discovery: from a split and a weight per labeled image to a category for every target image."""
