"""The page of `foveal inspect RUN --open`: a server on this machine alone, and what it shows."""
