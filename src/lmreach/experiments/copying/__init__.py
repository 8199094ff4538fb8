"""Copying: strings, training, and the length at which it fails."""
