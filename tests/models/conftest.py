"""One thread: the models are so small that a second one only waits, and on a busy machine waits long."""

import torch

torch.set_num_threads(1)
