"""The held-out texts of a run whose encoder reads them one by one: sentences to label, tag or translate.

Each text is read alone. The tokens of all texts stand one after another: those of the first half of the texts
for the search, those of the second half for the report.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.encoders.text import TextEncoder
from foveal.encoders.words import WordEncoder
from foveal.inspection.attention.words import SPECIAL_TOKEN
from foveal.inspection.capture.capture import capture
from foveal.inspection.cells.ablation import held_unit, state_parts
from foveal.inspection.cells.compute import token_labels, with_controls
from foveal.inspection.cells.probes import Probe
from foveal.inspection.cells.searched_text import FEWEST_TOKENS, Pieces, liveliest
from foveal.inspection.chosen_input import ChosenInput, input_split, why_no_input
from foveal.inspection.read_states import state_names
from foveal.inspection.run_protocols import InspectedRun
from foveal.layers.mixers.bidirectional import Bidirectional

MOST_TOKENS, MOST_SCORED = 10_000, 100
"""Tokens of held-out texts that are read, half of them for the search, and texts that are scored."""
ENCODER = "encoder."


def why_no_texts(run: InspectedRun) -> str:
    """Return why a run has no encoder that reads texts; an empty text if it has."""
    if isinstance(getattr(run.model, "encoder", None), TextEncoder | WordEncoder):
        return why_no_input(run)
    return f"this view needs a language model or an encoder of texts (task {run.task.name})"


def encoder_states(model: nn.Module) -> list[str]:
    """Return the names of the states of an encoder's layers."""
    return [name for name in state_names(model) if name.startswith(ENCODER)]


@dataclass(frozen=True)
class ExampleTexts:
    """Held-out texts in two rows: those for the search, and those for the report."""

    run: InspectedRun
    split: str
    texts: tuple[list[ChosenInput], list[ChosenInput]]
    labels: Float[Tensor, "2 T L"]
    """The value of each probe after each token, and those of the controls."""

    def names(self) -> list[str]:
        """Return the names of the states."""
        return encoder_states(self.run.model)

    def chunks(self, layers: Sequence[str], progress: ProgressCallback) -> Iterator[Mapping[str, Tensor]]:
        """Yield the states after each token."""
        rows, count = list[dict[str, Tensor]](), sum(map(len, self.texts))
        for texts in self.texts:
            read = list[Mapping[str, Tensor]]()
            for chosen in texts:
                progress(len(read) + (len(self.texts[0]) if rows else 0), count)
                read.append(text_states(self.run.model, chosen, layers))
            rows.append({name: torch.cat([each[name] for each in read]) for name in layers})
        length = self.labels.shape[1]
        yield {name: torch.stack([row[name][:length] for row in rows]) for name in layers}

    def shown(self, layers: Sequence[str], probes: Sequence[int]) -> Pieces:
        """Return the part of the reported texts in which some probes change most."""
        pieces = [piece for chosen in self.texts[1] for piece in text_pieces(self.run, chosen)]
        part = liveliest(self.labels[1][:, [*probes]])
        states = [text_states(self.run.model, chosen, layers) for chosen in self.texts[1]]
        values = {name: torch.cat([each[name] for each in states])[part] for name in layers}
        return Pieces(tuple(pieces[part]), values)

    def typed(self, text: str, layers: Sequence[str]) -> Pieces:
        """Return a typed text.

        Raises: UserError: the text is empty or too long, or it has a character without a token.
        """
        if not text.strip():
            raise UserError("--text is empty: write a text")
        chosen = self.run.task.input_of_text(text)
        states = text_states(self.run.model, chosen, layers)
        return Pieces(tuple(text_pieces(self.run, chosen)), states)

    def log_probabilities(self, layer: str, units: Sequence[int | None]) -> list[float]:
        """Return the mean log-probability in nats of the reported targets, for None of the model as it is,
        else while a unit is held at its mean over the texts."""
        model, texts = self.run.model, self.texts[1][:MOST_SCORED]
        names = [f"{layer.rpartition('/')[0]}/{part}" for part in state_parts(model, layer)]
        states = [text_states(model, chosen, names) for chosen in texts]
        means = {
            name.rpartition("/")[2]: torch.cat([each[name] for each in states]).double().mean(0)
            for name in names
        }
        results = []
        for unit in units:
            held: Any = nullcontext()
            if unit is not None:
                mean = {part: float(values[unit]) for part, values in means.items()}
                held = held_unit(model, layer, unit, mean)
            with held:
                scores = [chosen.total() for chosen in texts]
            results.append(sum(scores) / sum(len(chosen.target) for chosen in texts))
        return results


def read_examples(run: InspectedRun, data: str | None, probes: Mapping[str, Probe], log: Log) -> ExampleTexts:
    """Read held-out texts, and label their tokens.

    Raises: UserError: the texts have too few tokens.
    """
    split, name = input_split(run, data, log)
    texts, tokens = list[ChosenInput](), 0
    for row in range(run.task.count_inputs(split)):
        if tokens >= MOST_TOKENS:
            break
        texts.append(run.task.input_of_row(split, row))
        tokens += len(texts[-1].source)
    if tokens < FEWEST_TOKENS or len(texts) < 2:
        raise UserError(f"{name}: {tokens:,} tokens are too few to search units in; name more with --data")
    middle = _middle(texts, tokens)
    halves = texts[:middle], texts[middle:]
    labels = [np.concatenate([_labels(run, chosen, probes) for chosen in half]) for half in halves]
    length = min(map(len, labels))
    rows = [torch.from_numpy(with_controls(each[:length])) for each in labels]
    return ExampleTexts(run, name, halves, torch.stack(rows))


def _middle(texts: Sequence[ChosenInput], tokens: int) -> int:
    """Return the number of texts that have half of the tokens."""
    ends = np.cumsum([len(chosen.source) for chosen in texts])
    return int(np.clip(np.searchsorted(ends, tokens / 2), 1, len(texts) - 1))


def text_pieces(run: InspectedRun, chosen: ChosenInput) -> list[str]:
    """Return the tokens of a text, with a space before a word and a line break behind the text."""
    space = " " if isinstance(run.model.encoder, WordEncoder) else ""
    return [*(f"{space}{name}" for name in chosen.source[:-1]), f"{space}{chosen.source[-1]}\n"]


def _labels(run: InspectedRun, chosen: ChosenInput, probes: Mapping[str, Probe]) -> Float[np.ndarray, "T P"]:
    """Return the value of each probe after each token. A token such as `<stop>` is no text."""
    pieces = [piece.rstrip("\n") for piece in text_pieces(run, chosen)]
    pieces = ["" if SPECIAL_TOKEN.fullmatch(piece) else piece for piece in pieces]
    return token_labels(probes, "".join(pieces) or " ", np.array([*map(len, pieces)]))


def text_states(model: Any, chosen: ChosenInput, layers: Sequence[str]) -> dict[str, Float[Tensor, "T _"]]:
    """Return the states after each token of a text, in the order of the text: those of a mixer that reads
    backward are turned round."""
    with torch.inference_mode(), capture(model, *layers) as record:
        chosen.log_probabilities()
    backward = tuple(
        f"{path}.back" for path, module in model.named_modules() if isinstance(module, Bidirectional)
    )
    states = {}
    for name in layers:
        values = record[name][0][0]
        states[name] = values.flip(0) if name.rpartition("/")[0].startswith(backward) else values
    return states
