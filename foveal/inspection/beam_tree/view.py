"""The view `beam-tree` of a run: how a beam search came to its text."""

from dataclasses import dataclass

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.inspection.beam_tree.compute import BeamTree, Hypothesis, beam_tree
from foveal.inspection.chosen_input import InputOptions
from foveal.inspection.panels import Edge, Graph, Node, Role, Table
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.text_writer import TextWriter, text_writer, why_no_text
from foveal.inspection.view import View

MAX_BEAM = 50
CAVEAT = (
    "the search compares hypotheses by their probability under the model: a pruned one may be the better "
    "text, and one that was pruned early may have become the likeliest"
)


@dataclass(frozen=True)
class BeamTreeOptions(InputOptions):
    tokens: WholeNumber = 12
    """The largest number of tokens to write."""
    beam: WholeNumber | None = None
    """The number of hypotheses. Default 5 for targets of a source, as in foveal generate, and 3 for
    continuations."""
    length_penalty: float | None = None
    """Preference for longer texts (alpha of Wu et al. 2016). Default 1 for targets of a source, else 0."""
    pruned: WholeNumber = 2
    """Number of pruned hypotheses to show at each step, the likeliest of them."""


@register_view("beam-tree")
class BeamTreeView(View[BeamTreeOptions]):
    summary = "The hypotheses of a beam search by step: kept, pruned and finished."
    Options = BeamTreeOptions
    progress = "texts written"

    def fits(self, run: InspectedRun) -> str:
        return why_no_text(run)

    def compute(
        self, run: InspectedRun, options: BeamTreeOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        writer, name = text_writer(run, options, options.tokens, log)
        beam = options.beam if options.beam is not None else writer.beam or 3
        if not 1 <= beam <= MAX_BEAM:
            raise UserError(f"--beam {beam}: draw between 1 and {MAX_BEAM} hypotheses")
        if not 0 <= options.pruned <= MAX_BEAM:
            raise UserError(f"--pruned {options.pruned}: draw between 0 and {MAX_BEAM} pruned hypotheses")
        alpha = writer.length_penalty if options.length_penalty is None else options.length_penalty
        tree = beam_tree(writer, beam, alpha, options.pruned)
        return tree_payload(str(run.run.path), name, writer, tree, alpha)


def tree_payload(subject: str, name: str, writer: TextWriter, tree: BeamTree, alpha: float) -> Payload:
    """Return the tree, and a table of the hypotheses that were left at the end."""
    hypotheses = tree.hypotheses
    best = max(number for number, one in enumerate(hypotheses) if one.is_best)
    end = hypotheses[best]
    counts = {fate: sum(one.fate == fate for one in hypotheses) for fate in ("kept", "finished", "pruned")}
    texts = [_text(writer, tree, number) for number in range(len(hypotheses))]
    facts = (
        ("input", name),
        ("search", f"beam {tree.beam}, length penalty {alpha:g}"),
        ("best", texts[best]),
        ("log-probability", f"{end.log_probability:.3f} nats, score {end.score:.3f}"),
        ("hypotheses", ", ".join(f"{count:,} {fate}" for fate, count in counts.items())),
    )
    rows = [
        one._asdict() | {"tokens": [*tree.tokens(number)], "text": texts[number]}
        for number, one in enumerate(hypotheses)
    ]
    values = {"run": subject, "beam": tree.beam, "length_penalty": alpha, "hypotheses": rows, "best": best}
    panels = _graph(writer, tree), _table(tree, texts)
    return Payload(
        "beam-tree", subject, f"{subject}: beam search, {name}", panels, CAVEAT, "exact", facts, values
    )


def _text(writer: TextWriter, tree: BeamTree, number: int) -> str:
    tokens = (token for token in tree.tokens(number) if token < writer.tokenizer.size)
    return writer.tokenizer.decode(tokens)


def _graph(writer: TextWriter, tree: BeamTree) -> Graph:
    """Return a column for each step: the slots of the beam, and below them the pruned hypotheses."""
    start = Node("start", ("start",), (0.0, 0.0))
    nodes, edges = [start], list[Edge]()
    for number, one in enumerate(tree.hypotheses):
        role = _role(one)
        lines = [*writer.labels([one.token]), f"{one.log_probability:.2f}"]
        if one.fate == "finished":
            lines.append(f"score {one.score:.2f}")
        nodes.append(Node(str(number), tuple(lines), (float(one.step), float(one.slot)), role))
        parent = "start" if one.parent is None else str(one.parent)
        edges.append(Edge(parent, str(number), role=role))
    return Graph(
        "sum of ln p below each token; red: the best, green: finished, gray: pruned",
        tuple(nodes),
        tuple(edges),
        shape="text",
    )


def _role(one: Hypothesis) -> Role:
    if one.is_best:
        return "highlight"
    roles: dict[str, Role] = {"kept": "plain", "finished": "correct", "pruned": "muted"}
    return roles[one.fate]


def _table(tree: BeamTree, texts: list[str]) -> Table:
    """Return the hypotheses that finished or were in the beam at the end, the best score first."""
    last = max(one.step for one in tree.hypotheses)
    left = [
        number
        for number, one in enumerate(tree.hypotheses)
        if one.fate == "finished" or (one.fate == "kept" and one.step == last)
    ]
    rows = []
    for number in sorted(left, key=lambda number: -tree.hypotheses[number].score):
        one = tree.hypotheses[number]
        numbers = f"{one.step}", f"{one.log_probability:.3f}", f"{one.score:.3f}"
        rows.append((texts[number], *numbers, "yes" if one.fate == "finished" else "no"))
    return Table("", ("hypothesis", "tokens", "ln p", "score", "finished"), tuple(rows))
