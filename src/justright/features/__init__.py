"""From images to features: backbones, the exact last block, the view bank, feature tables.

Nothing is imported here, because most of it needs torch and reading a feature table does not.
"""
