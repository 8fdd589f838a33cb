"""The folder of a study, which holds its runs and the settings with which the study goes on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.store.durable import atomic_folder, write_synced
from foveal.store.run import check_outside_data, check_run_path
from foveal.store.sealed_json import open_json, seal_json


def open_study(folder: Path, name: str, settings: Mapping[str, Any], *data: str | None) -> bool:
    """Create the folder of the study `name` with its settings. Return whether the study had begun before.

    `data` are the paths of the data, in which no study is made.

    Raises: UserError: the folder belongs to something else, or to a study with other settings.
    """
    file = folder / f"{name}.json"
    if not file.is_file():
        check_run_path(folder)
        check_outside_data(folder, *data)
        with atomic_folder(folder) as new:
            write_synced(new / file.name, seal_json(dict(settings)))
        return False
    before = open_json(file.read_bytes(), str(file))
    changed = [key for key in {**before, **settings} if before.get(key) != settings.get(key)]
    if changed:
        raise UserError(
            f"{folder} was created with other settings ({changed[0]}): repeat those settings, or choose "
            "another --run"
        )
    return True
