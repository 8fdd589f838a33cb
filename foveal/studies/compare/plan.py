"""The models of a comparison, made equal before their training."""

from typing import Any

from foveal.config import Config, StackConfig
from foveal.studies.compare.candidates import Candidate, EqualTerms
from foveal.studies.compare.study import PlannedModel, PlannedModels
from foveal.studies.compare.terms import Terms
from foveal.studies.compare.widths import Size, count_parameters, solve_width
from foveal.tasks.read_settings import read_settings


def plan_models(equal: EqualTerms, terms: Terms) -> tuple[PlannedModels, dict[str, Config]]:
    """Return the models as they are trained, and their settings by name.

    Raises: UserError: a model can't be made equal to the others.
    """
    processor = equal.prepared.processor
    candidates = equal.candidates
    if terms.match == "params":
        size = Size("parameters", "--parameters", lambda config: count_parameters(config, processor))
        target = terms.parameters or size.measure(candidates[0].config)
        candidates = tuple(solve_width(each, target, size, processor) for each in candidates)
    planned = tuple(
        _planned(before, after, processor) for before, after in zip(equal.candidates, candidates, strict=True)
    )
    return PlannedModels(planned, equal.origin), {each.name: each.config for each in candidates}


def _planned(before: Candidate, after: Candidate, processor: Any) -> PlannedModel:
    """Return a model as it is trained. `before` has the expansion of its preset."""
    config = after.config
    return PlannedModel(
        after.name,
        after.preset,
        _width_text(before.config, config),
        config.optimizer.lr,
        count_parameters(config, processor),
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
