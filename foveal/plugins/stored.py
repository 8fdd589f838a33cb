"""The plugins of a run: a run keeps their sources, which are executed only if the user says so."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.plugins.installed import installed_plugins, load_installed_plugin
from foveal.plugins.loading import load_source, loaded_plugin, loaded_plugins
from foveal.plugins.options import PLUGIN, TRUST, is_trusted
from foveal.plugins.source import FOLDER, digest_of, read_source, read_stored, stored_plugins


def open_plugins(run: Path, manifest: Mapping[str, Any], log: Log, trust: bool = False) -> None:
    """Load the plugins that a run was made with. `manifest` is the content of its `run.json`.

    A plugin that the user named, or that is installed, is used if its content is that of training. A file
    that the user named is also used if it has changed since, and the log says so. Else the source that the
    run keeps is executed, if the user trusts it.

    Raises: UserError: only the run has the source of a plugin, and the user does not say to trust it.
    """
    modules: Mapping[str, Sequence[str]] = manifest.get("plugins", {})
    for name, hashes in stored_plugins(manifest["files"]).items():
        digest = digest_of(hashes)
        if _is_at_hand(name, digest, run, log):
            continue
        if not (trust or is_trusted()):
            raise UserError(_refusal(run, name))
        source = read_stored(run, name, hashes)
        if source.digest != digest:
            raise UserError(f"{source.path}: edited since the run was created; restore the file")
        own = [module for module in modules.get(name, ()) if module.partition(".")[0] == name]
        load_source(source, "run", own)


def options_to_open(run: Path) -> list[str]:
    """Return the options with which a command opens a run that this process opened or made."""
    options: list[str] = []
    stored = run / FOLDER
    names = sorted(path.stem for path in stored.iterdir()) if stored.is_dir() else []
    for plugin in map(loaded_plugin, names):
        if plugin is not None and plugin.origin == "file":
            here = plugin.path.is_relative_to(Path.cwd())
            options += [PLUGIN, str(plugin.path.relative_to(Path.cwd()) if here else plugin.path)]
        elif (plugin is None or plugin.origin != "installed") and TRUST not in options:
            options.append(TRUST)
    return options


def _is_at_hand(name: str, digest: str, run: Path, log: Log) -> bool:
    """Return whether the plugin is loaded, or installed, so that the run's own source is not needed."""
    loaded = loaded_plugin(name)
    if loaded is not None and loaded.source.digest == digest:
        return True
    if loaded is not None and loaded.origin in ("file", "imported"):
        log(f"{loaded.path}: not the code that {run} was made with, {_path(run, name)}; results may differ")
        return True
    for plugin in installed_plugins():
        path = plugin.find() if plugin.name == name and loaded is None else None
        if path is not None and read_source(path).digest == digest:
            load_installed_plugin(plugin)
            return True
    return False


def _refusal(run: Path, name: str) -> str:
    """Return why a run is not opened, and how to open it."""
    paths = [plugin.path for plugin in loaded_plugins() if plugin.name == name]
    paths += [path for plugin in installed_plugins() if plugin.name == name and (path := plugin.find())]
    other, code = f" ({paths[0]} has another content)" if paths else "", quote(str(_path(run, name)))
    return (
        f"{run}: was made with the plugin {name}{other}: read its code in {code}, and give {TRUST} to run it "
        "(in Python: foveal.load(..., trust_plugin=True))"
    )


def _path(run: Path, name: str) -> Path:
    """Return the path of a plugin that a run keeps."""
    file = run / FOLDER / f"{name}.py"
    return file if file.exists() else run / FOLDER / name
