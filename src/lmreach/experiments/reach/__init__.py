"""Which tokens some hidden state can emit, each verdict with its proof."""
