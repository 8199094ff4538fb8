"""Copying on the page."""
