"""Experiments: a frozen config and a model in, a frozen result out; no paths, no model names."""
