"""Decoder cells: their shares, also of the rarest."""
