"""Named public data sets: the registry, and how data sets are fetched or computed."""
