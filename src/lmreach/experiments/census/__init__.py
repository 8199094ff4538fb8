"""Outputs counted, exactly where the prompts can be listed."""
