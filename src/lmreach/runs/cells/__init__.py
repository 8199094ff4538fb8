"""Decoder cells as a command and as a part of a study."""
