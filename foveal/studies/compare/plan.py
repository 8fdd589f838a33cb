"""The models of a comparison, made equal before their training."""

from collections.abc import Callable
from typing import Any

from foveal.config import Config, StackConfig
from foveal.data.core.prepared_data import PreparedData
from foveal.studies.compare.candidates import EqualTerms
from foveal.studies.compare.step_size import step_memory, training_flops
from foveal.studies.compare.stored_models import PlannedModel, PlannedModels
from foveal.studies.compare.terms import SIZES, Match, Terms
from foveal.studies.compare.widths import Size, count_parameters, solve_width
from foveal.tasks.read_settings import read_settings


def plan_models(equal: EqualTerms, terms: Terms) -> tuple[PlannedModels, dict[str, Config]]:
    """Return the models as they are trained, and their settings by name.

    Raises: UserError: a model can't be made equal to the others.
    """
    candidates = equal.candidates
    if terms.match in SIZES:
        size = _size(terms.match, equal.prepared)
        target = terms.parameters or size.measure(candidates[0].config)
        processor = equal.prepared.processor
        candidates = tuple(solve_width(each, target, size, processor) for each in candidates)
    planned = tuple(
        planned_model(after.name, after.preset, before.config, after.config, equal.prepared)
        for before, after in zip(equal.candidates, candidates, strict=True)
    )
    return PlannedModels(planned, equal.origin), {each.name: each.config for each in candidates}


def _size(match: Match, prepared: PreparedData[Any, Any]) -> Size:
    """Return what widths are solved for."""
    measures: dict[Match, Callable[[Config], int]] = {
        "params": lambda config: count_parameters(config, prepared.processor),
        "flops": lambda config: round(training_flops(config, prepared)),
        "memory": lambda config: step_memory(config, prepared),
    }
    known: dict[str, int] = {}

    def measure(config: Config) -> int:
        key = config.model_dump_json()
        if key not in known:
            known[key] = measures[match](config)
        return known[key]

    return Size(SIZES[match], "--parameters" if match == "params" else "", measure)


def planned_model(
    name: str, preset: str, before: Config, config: Config, prepared: PreparedData[Any, Any]
) -> PlannedModel:
    """Return a model as it is trained. `before` are the settings before its width was solved for."""
    return PlannedModel(
        name,
        preset,
        _width_text(before, config),
        config.optimizer.lr,
        count_parameters(config, prepared.processor),
        training_flops(config, prepared),
        step_memory(config, prepared),
    )


def _width_text(before: Config, after: Config) -> str:
    """Return the widths of the encoder and of the stack after it, and the expansion if it was changed."""
    read = read_settings(after)
    stacks: dict[str, StackConfig] = {"model.encoder": after.model.encoder, "model": after.model}
    widths = [f"{stack.width}" for path, stack in stacks.items() if f"{path}.width" in read]
    factor = after.model.expansion / before.model.expansion
    if before.model.encoder.expansion != after.model.encoder.expansion:
        factor = after.model.encoder.expansion / before.model.encoder.expansion
    text = " and ".join(dict.fromkeys(widths))
    return text if factor == 1 else f"{text}, expansion x {factor:.3g}"
