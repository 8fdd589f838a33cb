"""`Run.predict` on short texts, against Hugging Face's pipeline with the same MiniLM weights.

One text is timed against the bare call of the model. 1,000 texts of 3 to 40 words are timed against the
pipeline, which sorts nothing, with batches of its own default (1) and of 32. Needs `transformers`.
"""

import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

import foveal
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
from foveal.interop.published.catalog import MINILM, fetch_weights

TEXTS = 1000
WORDS = (
    *("the", "a", "film", "plot", "cast", "was", "great", "dull", "lovely", "boring", "slow"),
    *("bright", "music", "script", "never", "always", "ended"),
)
ONE_TEXT = "a great and lovely film, but the plot was slow"


def draw_texts(count: int) -> list[str]:
    """Return texts of 3 to 40 words, most of them short."""
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=3 + int(37 * draw.random() ** 2))) for _ in range(count)]


def train_run(folder: Path) -> foveal.Run:
    """Return a classifier on MiniLM's encoder, hardly trained."""
    texts = draw_texts(80)
    labels = ["great" if "great" in text else "other" for text in texts]
    columns = {"text": texts, "label": labels}
    return foveal.train(columns, start_from="minilm", budget="1steps", run=folder / "run", quiet=True)


def bare_call(run: foveal.Run, text: str) -> Callable[[], object]:
    """Return the call of the model alone, on the encoded text."""
    form, task = run.session.task.data_format, run.session.task
    rows, examples = form.encode_unlabeled(
        [form.source.line_row("text", text)], task.processor, run.config.data, []
    )
    batch = task.example_batches(examples).batch(0, 0)
    assert len(rows) == 1

    def call() -> object:
        with torch.no_grad():
            return run.model.head(run.model.encode(batch.columns, batch.lengths)[0])

    return call


def pipeline_of_huggingface() -> Callable[..., object]:
    """Return Hugging Face's pipeline with MiniLM's weights and a new head."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

    folder = str(fetch_weights(MINILM, print))
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    classify: Callable[..., object] = pipeline(
        "text-classification", model=model, tokenizer=AutoTokenizer.from_pretrained(folder)
    )
    return classify


def main() -> None:
    options = parse_options(__doc__)
    texts = draw_texts(20 if options.quick else TEXTS)
    with tempfile.TemporaryDirectory() as folder:
        run = train_run(Path(folder))
        one = interleave(
            {"bare": bare_call(run, ONE_TEXT), "predict": partial(run.predict, [ONE_TEXT])},
            quick=options.quick,
        )
        classify = pipeline_of_huggingface()
        many = interleave(
            {
                "predict": partial(run.predict, texts),
                "pipeline": partial(classify, texts),
                "pipeline, batches of 32": partial(classify, texts, batch_size=32),
            },
            rounds=5,
            quick=options.quick,
        )
    title = "1,000 short texts: speed of `Run.predict` over the pipeline"
    seconds = f"{many.median('predict'):.2f} s"
    measurements: list[Measurement] = [
        ratio(
            "one text: time of `Run.predict` over the bare model",
            one.speedup("bare", "predict"),
            1.2,
            f"{1000 * one.median('predict'):.2f} against {1000 * one.median('bare'):.2f} ms",
            one.trust,
            at_most=True,
        ),
        ratio(title, many.speedup("predict", "pipeline"), 1.5, seconds, many.trust),
        ratio(f"{title}, batches of 32", many.speedup("predict", "pipeline, batches of 32"), 1.5, many.trust),
    ]
    report(measurements, options)


if __name__ == "__main__":
    main()
