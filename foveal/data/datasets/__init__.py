"""Named public data sets: the registry, how one is fetched or computed."""
