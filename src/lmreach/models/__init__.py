"""The only place that imports transformers: loading, probing and greedy decoding of frozen models."""
