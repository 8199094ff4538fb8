"""Copying as a run."""
