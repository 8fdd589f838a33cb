"""The view `model-map` of a run, or of a model before training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.data.core.batching import ExampleBatch, TokenBatch
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input, why_no_input
from foveal.inspection.model_map.fold import deepest, fitting_depth, fold
from foveal.inspection.model_map.panels import graph_panel, short_count, table_panel
from foveal.inspection.model_map.trace import trace_model
from foveal.inspection.model_map.unrolled import unrolled_graphs
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedModel, InspectedRun, OwnBatchesTask, own_batch
from foveal.inspection.view import ModelView
from foveal.training.carry import starting_carry
from foveal.training.protocols import Objective

CAVEAT = (
    "the ways of this one input, in evaluation mode; another may take others (experts, loops). Multiply-adds "
    "are those of matrix products and convolutions, without biases. A box has all that is inside it; arrows "
    "are data that are read, not their importance"
)
OWN_BATCH = "the first validation batch"
UNROLLED_CAVEAT = "the same weights at each step; arrows are data that are read, not their importance"


@dataclass(frozen=True)
class ModelMapOptions(InputOptions):
    depth: WholeNumber | None = None
    """How far modules are unfolded, in names between dots; as far as fits into a picture if not given."""
    unrolled: bool = False
    """Draw the states of the recurrent layers, step by step."""


@register_view("model-map")
class ModelMapView(ModelView[ModelMapOptions]):
    summary = "The graph of the model: shapes, parameters, multiply-adds; recurrent layers also unrolled."
    Options = ModelMapOptions
    depends_on_weights = False

    def fits(self, run: InspectedRun) -> str:
        return run.task.why_no_batch() if isinstance(run.task, OwnBatchesTask) else why_no_input(run)

    def compute(
        self, run: InspectedRun, options: ModelMapOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Follow the data of one input through the run's model."""
        subject = str(run.run.path)
        chooses_rows = options.unrolled or options.text is not None or bool(options.row) or bool(options.data)
        batch = own_batch(run, chooses_rows, log)
        if batch is not None:
            forward = _losses(run.objective, batch)
            return _map(run.model, run.task.columns(batch), forward, options.depth, subject, OWN_BATCH)
        chosen = choose_input(run, options, log)
        if options.unrolled:
            return _unrolled(run.model, chosen, subject)
        inputs = _inputs(chosen.batch)
        return _map(run.model, inputs, chosen.log_probabilities, options.depth, subject, chosen.name)

    def compute_untrained(
        self, model: InspectedModel, options: ModelMapOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Follow the data of the first row of a batch through a model before training."""
        if options.unrolled or options.text is not None or options.row:
            raise UserError("--unrolled, --text and --row show a run: leave them out for a model")
        ((_, task, batch),) = model.initialized([model.config.model.initialization], options.data, log)
        row = first_row(batch).to(next(task.model.parameters()).device)
        task.model.eval()
        forward = _losses(task.objective(), row)
        return _map(task.model, _inputs(row), forward, options.depth, model.name, "the first row of a batch")


def _losses(objective: Objective, batch: Any) -> Callable[[], Any]:
    """Return a function that runs the model on a batch and returns its losses."""

    def run() -> Any:
        output, _ = objective(batch, starting_carry(objective, batch, None))
        return [term.sum for term in output.terms.values()]

    return run


def first_row(batch: Any) -> Any:
    """Return a batch with the first row of a batch."""
    if isinstance(batch, TokenBatch):
        starts, lengths = batch.stream_starts, batch.lengths
        return TokenBatch(
            batch.inputs[:1],
            batch.targets[:1],
            None if starts is None else starts[:1],
            None if lengths is None else lengths[:1],
        )
    return batch.take(torch.tensor([0]))


def _inputs(batch: Any) -> dict[str, Tensor]:
    if isinstance(batch, ExampleBatch):
        return dict(batch.columns)
    return {"tokens": batch.inputs}


def _map(
    model: nn.Module,
    inputs: dict[str, Tensor],
    run: Callable[[], Any],
    depth: int | None,
    subject: str,
    name: str,
) -> Payload:
    trace = trace_model(model, inputs, run)
    most = deepest(trace)
    if depth is not None and not 1 <= depth <= most:
        raise UserError(f"--depth {depth}: expected 1 to {most}, where nothing is folded")
    depth = depth or fitting_depth(trace)
    graph = fold(trace, depth)
    boxes = graph.boxes.values()
    parameters = sum(box.parameters for box in boxes)
    products = sum(box.multiply_adds for box in boxes)
    facts = [
        ("input", name),
        ("parameters", f"{parameters + graph.unused_parameters:,}"),
        ("multiply-adds", f"{products:,} for this input"),
        ("depth", f"{depth} of {most}; --depth N shows more or less"),
    ]
    if graph.unused_parameters:
        facts.append(
            ("not reached", f"{graph.unused_parameters:,} parameters of modules that it does not run")
        )
    counts = f"{short_count(parameters)} parameters, {short_count(products)} multiply-adds"
    values = {"boxes": [vars(box) for box in boxes], "edges": [*map(list, graph.edges)]}
    panels = graph_panel(graph), table_panel(graph)
    title = f"{subject}: {counts}"
    return Payload("model-map", subject, title, panels, CAVEAT, "exact", tuple(facts), values)


def _unrolled(model: nn.Module, chosen: ChosenInput, subject: str) -> Payload:
    graphs, facts = unrolled_graphs(model, chosen)
    title = f"{subject}, unrolled over {chosen.name}"
    return Payload("model-map", subject, title, graphs, UNROLLED_CAVEAT, "exact", tuple(facts))
