"""The census as a run."""
