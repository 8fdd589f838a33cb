"""`--tta` and `--tta-scales`: a trained model's predictions are averaged over several views of an image."""

from foveal.core.errors import UserError
from foveal.tasks.data_overrides import with_data_settings
from foveal.tasks.session import Session


def with_test_time_views(session: Session, tta: str | None, tta_scales: str | None) -> Session:
    """Return the run with these settings. None leaves a setting unchanged.

    Raises: UserError: the run's task does not average over views.
    Raises: ConfigError: a value is not valid.
    """
    named = {name: value for name, value in (("tta", tta), ("tta_scales", tta_scales)) if value is not None}
    if not named:
        return session
    task = session.task
    if not task.averages_views:
        option = next(iter(named)).replace("_", "-")
        raise UserError(f"{session.run.path}: --{option} is for runs of images; leave it out")
    return with_data_settings(session, {"image": named})
