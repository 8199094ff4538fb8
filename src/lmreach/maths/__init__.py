"""Limits from theory: numpy and scipy only, no torch, no files, no prints; everything in natural logs."""
