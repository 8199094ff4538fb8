"""The study: limits, cramming at several m, and what stands beside them, within a budget."""
