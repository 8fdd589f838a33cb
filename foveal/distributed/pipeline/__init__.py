"""Pipeline parallelism: each process computes some blocks of a model, its stages (Narayanan et al. 2021)."""
