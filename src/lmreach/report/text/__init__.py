"""Results as lines of text: what the command line prints, and what a result says of itself in Python."""
