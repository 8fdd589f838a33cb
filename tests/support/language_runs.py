"""Runs of small language models before training, in memory, as views use them."""

from pathlib import Path
from typing import Any

from torch import nn

from foveal import layers
from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.store.run import RunFolder
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import EvaluationData, Session


class LanguageRun(Session):
    """A run that has never been stored. All of its text is held out."""

    text: str

    def held_out(self, data: str | None, option_hint: str, log: Any = print) -> EvaluationData:
        return EvaluationData(self.processor.encode(self.text if data is None else data), "test", {})


def language_run(text: str, *settings: str, model: nn.Module | None = None) -> LanguageRun:
    """Return a run with a model of the characters of a text, of the preset `lstm` with settings."""
    config = load_config("lstm", ["model.width=8", "data.context_length=32", *settings])
    task = task_of(config).bind(CharacterTokenizer(text))
    task = task.bind(task.processor, (task.new_model() if model is None else model).eval())
    run = LanguageRun(RunFolder(Path("runs/small"), config, {}), task, task.objective())
    object.__setattr__(run, "text", text)
    return run


def one_hot_model(mixer: layers.Recurrent) -> layers.DecoderLM:
    """Return a language model of one layer, which reads its tokens as they are."""
    return layers.DecoderLM(layers.OneHot(mixer.d_in), layers.Stack([layers.Block(mixer)]), mixer.d_out)
