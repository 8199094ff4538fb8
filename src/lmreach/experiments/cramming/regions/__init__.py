"""Sets that prompt vectors are held to: regions of the input space, subspaces, and number formats."""
