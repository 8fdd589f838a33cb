"""The page of `foveal inspect RUN --open`: a server on this machine alone, and what it shows."""

from foveal.core.extras import require

require("fastapi", "the page (--open)")
require("uvicorn", "the page (--open)")
