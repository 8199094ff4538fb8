"""What is to be emitted: strings drawn, and strings read from files."""
