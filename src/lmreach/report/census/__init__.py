"""The census on the page."""
