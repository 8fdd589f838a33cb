"""What is on disk: runs, checkpoints, logs, the cache; durable and sealed."""
