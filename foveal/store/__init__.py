"""Files on disk: runs, checkpoints, logs and the cache, written durably and sealed with hashes."""
