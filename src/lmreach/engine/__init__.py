"""Planning, storing and executing trials; knows trials, not science."""
