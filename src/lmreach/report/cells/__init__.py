"""Decoder cells on the page."""
