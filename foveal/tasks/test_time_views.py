"""`--tta` and `--tta-scales`: a trained run is asked several views of a picture."""

from dataclasses import replace

from foveal.config import from_tables
from foveal.core.errors import UserError
from foveal.tasks.session import LoadedRun


def with_test_time_views(loaded: LoadedRun, tta: str | None, tta_scales: str | None) -> LoadedRun:
    """The run with these settings in place of those it was trained with; None leaves one as it is.

    UserError for a run of no images, ConfigError for what is no setting.
    """
    given = {name: value for name, value in (("tta", tta), ("tta_scales", tta_scales)) if value is not None}
    if not given:
        return loaded
    if loaded.config.task.name != "image-classification":
        raise UserError(
            f"{loaded.run.path}: --{next(iter(given)).replace('_', '-')} is for runs of images; leave it out"
        )
    config = from_tables(loaded.config.model_dump(), {"data": {"image": given}})
    return replace(loaded, config=config)
