"""Where final hidden states lie."""
