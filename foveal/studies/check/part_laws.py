"""The laws of single parts that are made: mixers, encoders and heads."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import nn

from foveal.core.module_facts import HasInputBlock
from foveal.laws import encoder_laws, head_laws, mixer_laws
from foveal.laws.law import reset_all_parameters
from foveal.laws.trial import T, Trial
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.studies.check.example_sources import ExampleSource
from foveal.studies.check.law import Law, law_without_length

EVERY_CUT = range(1, T)
Make = Callable[[], nn.Module]
"""Returns a new module, with the same weights each time."""


def laws_of_mixer(trial: Callable[[], Trial]) -> Iterator[Law]:
    """Yield the laws of a mixer that goes on from a state."""
    reads_memory = trial().memory is not None
    for name, law in (
        ("keeps nothing between calls", mixer_laws.keeps_nothing),
        ("pieces equal the whole", partial(mixer_laws.chunks, cuts=EVERY_CUT)),
        ("init_state is the start", mixer_laws.start_state_is_no_state),
        ("sees no future", _every_place_sees_no_future),
        ("padding and other rows change nothing", mixer_laws.padding_and_batch),
        ("rows can be selected and reset", mixer_laws.select_and_reset),
        ("states have their own storage", mixer_laws.storage),
        ("generation equals training", mixer_laws.one_by_one),
        ("every parameter learns", mixer_laws.every_parameter_learns),
    ):
        yield law_without_length(name, partial(_on_trial, law, trial))
    if reads_memory:
        name = "the order of the memory changes nothing"
        yield _law_of_order(name, mixer_laws.order_of_memory, trial)


def laws_of_whole_row_mixer(trial: Callable[[], Trial]) -> Iterator[Law]:
    """Yield the laws of a mixer that reads the whole row at once, and has no state."""
    for name, law in (
        ("padding and other rows change nothing", mixer_laws.padding_and_batch),
        ("every parameter learns", mixer_laws.every_parameter_learns),
    ):
        yield law_without_length(name, partial(_on_trial, law, trial))
    yield _law_of_order("permuted places have permuted outputs", mixer_laws.order_of_places, trial)


def _law_of_order(name: str, law: Callable[[Trial], object], trial: Callable[[], Trial]) -> Law:
    """Return a law of a mixer that states not to know an order."""
    reason = "" if getattr(trial().module, "ignores_order", False) else "the mixer knows the order"
    return Law(name, lambda path, length: law(trial()), reason=reason)


def law_of_reset(make: Make) -> Law:
    """Return the law that `reset_parameters` fills everything."""
    return law_without_length("reset_parameters fills everything", lambda: reset_all_parameters(make()))


def laws_of_encoder(make: Make, example: ExampleSource, each_place: bool) -> Iterator[Law]:
    """Yield the laws of an encoder. With `each_place`, the memory has a vector for each place."""
    _, source, lengths = example

    def fitted() -> nn.Module:
        return _fit(make(), example)

    fitted()
    yield law_without_length(
        "makes a memory",
        lambda: encoder_laws.shape(fitted(), source, lengths, lengths if each_place else None),
    )
    yield law_without_length(
        "keeps nothing between calls", lambda: encoder_laws.keeps_nothing(fitted(), source, lengths)
    )
    if lengths is not None:
        yield law_without_length(
            "padding changes nothing", lambda: encoder_laws.padding(fitted(), source, lengths)
        )
    yield law_without_length(
        "other rows change nothing", lambda: encoder_laws.batch(fitted(), source, lengths)
    )
    yield law_without_length(
        "every parameter learns", lambda: encoder_laws.every_parameter_learns(fitted(), source, lengths)
    )


def laws_of_head(make: Make, width: int, classes: int, each_place: bool) -> Iterator[Law]:
    """Yield the laws of a head that predicts labels."""

    def run(head: nn.Module) -> head_laws.Run:
        return head_laws.runner(head, each_place)

    make()
    yield law_without_length("gives logits", lambda: head_laws.shape(run(make()), width, classes, each_place))
    yield law_without_length(
        "keeps nothing between calls",
        lambda: head_laws.keeps_nothing(head := make(), run(head), width),
    )
    yield law_without_length(
        "padding changes nothing", lambda: head_laws.padding(run(make()), width, each_place)
    )
    yield law_without_length(
        "other rows change nothing", lambda: head_laws.batch(run(make()), width, each_place)
    )
    yield law_without_length(
        "every parameter learns",
        lambda: head_laws.every_parameter_learns(head := make(), run(head), width),
    )


def _on_trial(law: Callable[[Trial], object], trial: Callable[[], Trial]) -> None:
    law(trial())


def _every_place_sees_no_future(trial: Trial) -> None:
    for t in EVERY_CUT:
        mixer_laws.causality(trial, t)


def _fit(encoder: nn.Module, example: ExampleSource) -> nn.Module:
    """Return an encoder, whose weights from training data, if there are any, are those of the example."""
    first = encoder.input_block() if isinstance(encoder, HasInputBlock) else encoder
    if isinstance(first, DataDependentInit):
        torch.manual_seed(0)
        first.fit(example.values, *([] if example.lengths is None else [torch.tensor(example.lengths)]))
    return encoder
