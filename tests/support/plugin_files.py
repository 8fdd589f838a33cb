"""Files of plugins, and stand-ins for installed ones."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from foveal.plugins import installed

CELL = """
import foveal
from torch import nn
from foveal.layers.mixers.recurrent import RecurrentCell

@foveal.register_mixer("{name}")
class Cell(RecurrentCell):
    def __init__(self, d_in, width, scale: float = 1.0):
        super().__init__()
        self.d_in, self.d_out, self.sizes, self.scale = d_in, width, dict(h=width), scale
        self.input, self.hidden = nn.Linear(d_in, width), nn.Linear(width, width)
    def reset_parameters(self):
        self.input.reset_parameters()
        self.hidden.reset_parameters()
    def project(self, x):
        return self.input(x)
    def step(self, p, state):
        h = (p + self.scale * self.hidden(state["h"])).tanh()
        return h, dict(h=h)
"""


def write_cell(path: Path, name: str = "tanh-cell", more: str = "") -> Path:
    """Write a plugin with one recurrent cell, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CELL.format(name=name) + more)
    return path


def write_package(folder: Path, **modules: str) -> Path:
    """Write a package, and return its folder. The key `init` stands for `__init__.py`."""
    folder.mkdir(parents=True)
    for name, text in {"init": "", **modules}.items():
        (folder / f"{'__init__' if name == 'init' else name}.py").write_text(text)
    return folder


def install(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Let each module be the plugin of an installed package."""
    points = [EntryPoint(f"{module}-entry", module, installed.GROUP) for module in modules]
    monkeypatch.setattr(installed, "entry_points", lambda group: points)
    monkeypatch.setattr(installed, "_searched", [])
