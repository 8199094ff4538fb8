"""Where the items of a plan are worked on: here, in processes, on a Ray cluster, in Slurm jobs.

The driver hands items out one by one and alone writes to the ledger; see `lmreach.engine.executors.base`.
"""
