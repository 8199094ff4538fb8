"""Prompt vectors optimised on the frozen model until greedy decoding emits a target."""
