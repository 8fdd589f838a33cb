"""The laws of a whole model, which is called through its own interface."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.heads.decoder_lm import DecoderLM
from foveal.laws import decoder_laws, source_laws
from foveal.laws.decoder_laws import ROWS, DecoderTrial
from foveal.laws.source_laws import SourceTrial
from foveal.layers.blocks.moe import MoELayer
from foveal.studies.check.example_sources import LONGEST, ExampleSource
from foveal.studies.check.generation_laws import laws_of_generation
from foveal.studies.check.law import PATHS, ComputePath, Law, on_path
from foveal.studies.check.precision import PRECISIONS, SINGLE, Losses, laws_of_precision
from foveal.studies.check.weights import laws_of_weights

LENGTH = 10
"""The longest text that a decoder reads under check."""


@dataclass(frozen=True)
class WholeModel:
    """A model in evaluation mode, and sources that it reads."""

    model: nn.Module
    example: ExampleSource | None
    """Sources of its encoder; None if it has none."""
    ignores_order: bool = False
    """Whether the config says that the encoder does not know the order of the places of a source."""
    ties_tables: bool = False
    """Whether the config says that the projection shares the table of an embedding."""
    samples_positions: bool = False
    """Whether a mixer samples the positions that it reads."""
    another: Callable[[], nn.Module] | None = None
    """Returns the same model with other weights."""

    @property
    def head(self) -> Any:
        return getattr(self.model, "head", self.model)

    @property
    def decodes(self) -> bool:
        return isinstance(self.head, DecoderLM)

    @property
    def chooses(self) -> bool:
        """Return whether the model chooses experts or positions, and perhaps others in lower precision."""
        return self.samples_positions or any(isinstance(layer, MoELayer) for layer in self.model.modules())

    @property
    def each_place(self) -> bool:
        """Return whether the head predicts something for each place of the source."""
        return not self.decodes and "positions" in signature(self.head.forward).parameters


def laws_of_model(whole: WholeModel) -> Iterator[Law]:
    """Yield the laws of a model that decodes, or that labels a source."""
    models = {path: _as_path(whole.model, path) for path in PATHS}
    if whole.decodes:
        trials = {path: _decoder_trial(whole, model, path) for path, model in models.items()}
        yield from laws_of_decoder(trials, whole)
        yield from laws_of_generation(trials)
    if whole.example is not None:
        sources = {path: _source_trial(whole, model, path) for path, model in models.items()}
        yield from laws_of_source(sources, whole)
    losses = _decoder_losses(whole) if whole.decodes else None
    limits = SINGLE if whole.chooses else PRECISIONS
    yield from laws_of_precision(whole.model, _logits_of(whole), losses, limits)
    yield from laws_of_weights(whole.model, whole.another, _logits_of(whole), whole.ties_tables)


def laws_of_decoder(trials: Mapping[ComputePath, DecoderTrial], whole: WholeModel) -> Iterator[Law]:
    """Yield the laws of the tokens that a decoder reads."""
    head = whole.head
    longest = min(LENGTH, head.limit - 4) if head.limit else LENGTH
    for name, law in (
        ("keeps nothing between calls", decoder_laws.keeps_nothing),
        ("init_state is the start", decoder_laws.start_state),
        ("pieces equal the whole", decoder_laws.chunks),
        ("sees no future", decoder_laws.causality),
        ("padding changes nothing", decoder_laws.padding),
        ("other rows change nothing", decoder_laws.batch),
        ("rows can be selected", decoder_laws.select),
        ("cached equals uncached", decoder_laws.cached),
        ("the loss is that of the logits", decoder_laws.loss_of_logits),
        ("every parameter learns", decoder_laws.every_parameter_learns),
    ):
        yield Law(name, on_path(law, trials), longest, PATHS)


def laws_of_source(trials: Mapping[ComputePath, SourceTrial], whole: WholeModel) -> Iterator[Law]:
    """Yield the laws of the sources that a model reads."""
    of = " (source)" if whole.decodes else ""
    trial = next(iter(trials.values()))
    longest = LONGEST if trial.has_places else 0
    yield Law(f"keeps nothing between calls{of}", on_path(source_laws.keeps_nothing, trials), longest, PATHS)
    padding = {
        f"padding changes nothing{of}": source_laws.padding,
        f"more padding changes nothing{of}": source_laws.more_padding,
        f"more padding changes nothing in training{of}": source_laws.more_padding_in_training,
    }
    for name, law in padding.items():
        reason = "" if trial.has_places else "images have no padding"
        if law is source_laws.more_padding_in_training and not reason:
            reason = _why_not_in_training(trial)
        yield Law(name, on_path(law, trials), longest, PATHS, reason)
    yield Law(f"other rows change nothing{of}", on_path(source_laws.batch, trials), longest, PATHS)
    reason = "" if whole.ignores_order else "the encoder knows the order of places"
    order = partial(source_laws.permutation, each_place=whole.each_place)
    yield Law(f"the order of places changes nothing{of}", on_path(order, trials), longest, PATHS, reason)
    if not whole.decodes:
        learns = on_path(source_laws.every_parameter_learns, trials)
        yield Law("every parameter learns", learns, longest, PATHS)


def _why_not_in_training(trial: SourceTrial) -> str:
    if not any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in trial.model.modules()):
        return "no norm takes the statistics of a batch"
    if source_laws.is_random_in_training(trial, LONGEST):
        return "the model draws random numbers in training"
    return ""


def _as_path(model: nn.Module, path: ComputePath) -> nn.Module:
    return deepcopy(model).to(path.dtype).eval()


def _decoder_trial(whole: WholeModel, model: Any, path: ComputePath) -> DecoderTrial:
    exact = not any(isinstance(layer, MoELayer) for layer in model.modules())
    memory = _kept_without_gradients(partial(_memory_of, model, whole.example))
    return DecoderTrial(model, getattr(model, "head", model), memory, path.tolerance, exact)


def _memory_of(model: Any, example: ExampleSource | None) -> Memory | None:
    """Return the memory of the example's rows."""
    if example is None:
        return None
    memory, _ = model.encode(*_columns(model, example.values, _tensor(example.lengths)))
    return memory


def _kept_without_gradients(make: Callable[[], Memory | None]) -> Callable[[], Memory | None]:
    """Return a function that makes a memory once, unless gradients flow into it."""
    kept = list[Memory | None]()

    def memory() -> Memory | None:
        if torch.is_grad_enabled():
            return make()
        if not kept:
            kept.append(make())
        return kept[0]

    return memory


def _source_trial(whole: WholeModel, model: nn.Module, path: ComputePath) -> SourceTrial:
    assert whole.example is not None
    _, values, lengths = whole.example
    return SourceTrial(model, _logits_of_source(whole), values, lengths is not None, path.tolerance)


def _logits_of_source(whole: WholeModel) -> source_laws.Logits:
    def logits(model: Any, source: Tensor, lengths: Tensor | None, rows: Tensor) -> Tensor:
        memory, _ = model.encode(*_columns(model, source, lengths))
        if whole.decodes:
            tokens = _example_tokens(model.head)[rows]
            return model.head.project(model.head(tokens, model.head.init_state(memory, len(rows)))[0])
        if not whole.each_place:
            return model.head.project(model.head(memory)[0])
        all_places = torch.arange(memory.mask.shape[1]).expand(len(memory.mask), -1)
        places = () if _reads_all_places(model.head) else (all_places,)
        return model.head.project(model.head(memory, *places)[0]).where(memory.mask[..., None], 0.0)

    return logits


def _logits_of(whole: WholeModel) -> Callable[[Any], Tensor]:
    """Return a function from a model to the logits of the example."""

    def logits(model: Any) -> Tensor:
        if whole.decodes:
            head = getattr(model, "head", model)
            state = head.init_state(_memory_of(model, whole.example), ROWS)
            return head.project(head(_example_tokens(head), state)[0])
        assert whole.example is not None
        values, lengths = whole.example.values, _tensor(whole.example.lengths)
        return _logits_of_source(whole)(model, values, lengths, torch.arange(ROWS))

    return logits


def _decoder_losses(whole: WholeModel) -> Losses:
    """Return a function from a model that decodes to the mean loss of the example's tokens, and to the
    cross-entropy of their logits in float64."""

    def losses(model: Any) -> tuple[Tensor, Tensor]:
        head = getattr(model, "head", model)
        tokens = _example_tokens(head)
        features, _, _ = head(tokens, head.init_state(_memory_of(model, whole.example), ROWS))
        features, targets = features.flatten(0, 1), tokens.roll(-1, 1).flatten()
        wanted = nn.functional.cross_entropy(head.project(features).double(), targets)
        return head.losses(features, targets).nll / len(targets), wanted

    return losses


def _reads_all_places(head: Any) -> bool:
    return signature(head.forward).parameters["positions"].default is None


def _example_tokens(head: Any) -> Tensor:
    length = min(LENGTH, head.limit) if head.limit else LENGTH
    return torch.randint(head.vocabulary, (ROWS, length), generator=torch.Generator().manual_seed(3))


def _columns(
    model: nn.Module, source: Tensor, lengths: Tensor | None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the arguments of `encode`, with numbers in the precision of the model."""
    if source.is_floating_point():
        source = source.to(next(model.parameters()).dtype)
    return {"source": source}, {} if lengths is None else {"source": lengths}


def _tensor(lengths: list[int] | None) -> Tensor | None:
    return None if lengths is None else torch.tensor(lengths)
