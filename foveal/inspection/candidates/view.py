"""The view `candidates` of a run: why this token, and not another."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.generation.sampling import Sampling
from foveal.inspection.candidates.compute import WrittenText, sampled_text, searched_text
from foveal.inspection.chosen_input import InputOptions
from foveal.inspection.panels import Axis, ColoredText, Heatmap, NamedArray, Table
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.text_writer import TextWriter, text_writer, why_no_text
from foveal.inspection.view import View

MAX_CANDIDATES, MAX_BEAM = 20, 50
CAVEAT = (
    "the probabilities are those of the model, not of the world: a likely token may be wrong. Each step is "
    "given the tokens before it, so an early choice decides which later ones are likely"
)


@dataclass(frozen=True)
class CandidatesOptions(InputOptions):
    tokens: WholeNumber = 30
    """The largest number of tokens to write."""
    top: WholeNumber = 6
    """Number of likeliest tokens to show at each step."""
    temperature: float | None = None
    """Sample with this temperature; 0 always takes the likeliest. Default as in foveal generate: 0.8 for
    continuations; beam search for targets of a source."""
    seed: WholeNumber = 0
    """Different seeds give different samples."""
    beam: WholeNumber | None = None
    """Search with this many hypotheses instead of sampling."""


@register_view("candidates")
class CandidatesView(View[CandidatesOptions]):
    summary = "The likeliest tokens at each step of a text that a run writes, and which was taken."
    Options = CandidatesOptions
    progress = "texts written"

    def fits(self, run: InspectedRun) -> str:
        return why_no_text(run)

    def compute(
        self, run: InspectedRun, options: CandidatesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        if not 1 <= options.top <= MAX_CANDIDATES:
            raise UserError(f"--top {options.top}: show between 1 and {MAX_CANDIDATES} tokens")
        if options.beam is not None and not 1 <= options.beam <= MAX_BEAM:
            raise UserError(f"--beam {options.beam}: search with between 1 and {MAX_BEAM} hypotheses")
        if options.beam is not None and options.temperature is not None:
            raise UserError("--beam searches and does not sample: leave out --temperature")
        writer, name = text_writer(run, options, options.tokens, log)
        beam = options.beam
        if beam is None:
            beam = 0 if options.temperature is not None else writer.beam
        if beam:
            method = f"beam search with {beam} hypotheses"
            text = searched_text(writer, beam, writer.length_penalty, options.top)
        else:
            temperature = writer.temperature if options.temperature is None else options.temperature
            method = f"sampled at temperature {temperature:g}" if temperature else "the likeliest token"
            text = sampled_text(writer, Sampling(temperature, seed=options.seed), options.top)
        return candidates_payload(str(run.run.path), name, writer, text, method)


def candidates_payload(
    subject: str, name: str, writer: TextWriter, text: WrittenText, method: str
) -> Payload:
    """Return a map of the likeliest tokens of each step, the text by its surprise, and a table of steps."""
    tokens = writer.names(token.token for token in text.tokens)
    surprise = np.array([-token.log_probability for token in text.tokens])
    entropy = np.array([token.entropy for token in text.tokens])
    rows = NamedArray(
        np.stack([surprise, entropy]),
        (Axis("measure", ("surprise: -ln p of the token", "entropy of the step")), Axis("token", tokens)),
        "nats",
    )
    colored = ColoredText("", tokens, rows, 0.0, max(1.0, float(rows.values.max())))
    first = sum(token.rank == 1 for token in text.tokens)
    hardest = int(surprise.argmax())
    facts = (
        ("input", name),
        ("written by", method),
        ("text", writer.tokenizer.decode(_plain(writer, text))),
        ("log-probability", f"{text.log_probability:.3f} nats in {len(tokens)} tokens"),
        ("likeliest", f"{first} of {len(tokens)} tokens were the likeliest of their step"),
        ("least expected", f"{tokens[hardest]!r}, probability {math.exp(-surprise[hardest]):.3g}"),
        ("ends", {"end": "by itself", "limit": "at the limit", "stop": "at a stop text"}[text.finish_reason]),
    )
    steps = [
        token._asdict() | {"candidates": [candidate._asdict() for candidate in token.candidates]}
        for token in text.tokens
    ]
    values = {"run": subject, "steps": steps, "log_probability": text.log_probability}
    panels = (_map(writer, text), colored, _table(writer, text))
    title = f"{subject}: likeliest tokens, {name}"
    return Payload("candidates", subject, title, panels, CAVEAT, "exact", facts, values)


def _plain(writer: TextWriter, text: WrittenText) -> list[int]:
    return [token.token for token in text.tokens if token.token < writer.tokenizer.size]


def _map(writer: TextWriter, text: WrittenText) -> Heatmap:
    """Return a row for each step, with its likeliest tokens from left to right; the one taken is marked."""
    ranks = len(text.tokens[0].candidates)
    shares = np.array([[math.exp(each.log_probability) for each in one.candidates] for one in text.tokens])
    labels = tuple(writer.labels(each.token for each in one.candidates) for one in text.tokens)
    taken = writer.labels(token.token for token in text.tokens)
    marks = tuple((step, one.rank - 1) for step, one in enumerate(text.tokens) if one.rank <= ranks)
    axes = Axis("token that was taken", taken), Axis("rank", tuple(map(str, range(1, ranks + 1))))
    return Heatmap("", NamedArray(shares, axes, "probability"), 0.0, 1.0, labels, marks)


def _table(writer: TextWriter, text: WrittenText) -> Table:
    return Table(
        "",
        ("step", "token", "p", "rank", "entropy", "sum of ln p", "likeliest"),
        tuple(_table_rows(writer, text)),
    )


def _table_rows(writer: TextWriter, text: WrittenText) -> Iterator[tuple[str, ...]]:
    total = 0.0
    for step, one in enumerate(text.tokens, 1):
        total += one.log_probability
        names = writer.labels([one.token, *(each.token for each in one.candidates)])
        chances = [f"{math.exp(each.log_probability):.3f}" for each in one.candidates]
        likeliest = ", ".join(f"{name} {chance}" for name, chance in zip(names[1:], chances, strict=True))
        share, entropy = f"{math.exp(one.log_probability):.3f}", f"{one.entropy:.3f}"
        yield str(step), names[0], share, str(one.rank), entropy, f"{total:.3f}", likeliest
