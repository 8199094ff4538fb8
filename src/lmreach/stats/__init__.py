"""Statistics of reaches: numpy and scipy only; arrays in, result objects out."""
