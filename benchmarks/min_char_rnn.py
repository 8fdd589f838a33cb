"""Batched `min-char-rnn` against the algorithm of the NumPy original, in characters per second.

Both have width 100 and chunks of 25. Ours reads 128 streams at once, the original a single stream in float64.
"""

from typing import Any

from benchmarks.subject import VOCABULARY, Subject
from benchmarks.timing import interleave, parse_options, ratio, report
from foveal.tasks.config import load_config
from tests.support.min_char_rnn import min_char_rnn, min_char_weights

CHUNK = 25
STREAMS = 128


def main() -> None:
    options = parse_options(__doc__)
    streams, steps = (4, 4) if options.quick else (STREAMS, 80)
    ours = Subject(load_config("min-char-rnn", [f"data.batch_tokens={streams * CHUNK}"]))
    single: Any = Subject(load_config("min-char-rnn"), batches=steps)
    assert all(batch.inputs.shape == (1, CHUNK) for batch in single.batches)
    text = [token for batch in single.batches for token in batch.inputs[0].tolist()] + [0]
    weights = [weight.astype("float64") for weight in min_char_weights(single.model)]
    assert weights[0].shape == (100, VOCABULARY.size)

    samples = interleave(
        {"ours": ours, "original": lambda: min_char_rnn(text, weights, steps)}, quick=options.quick
    )
    characters = {"ours": ours.tokens, "original": steps * CHUNK}
    per_second = {name: count / samples.median(name) for name, count in characters.items()}
    scale = characters["ours"] / characters["original"]
    speedups = [scale * value for value in samples.speedup("ours", "original")]
    speeds = f"{per_second['ours']:,.0f} against {per_second['original']:,.0f} characters/s"
    report(
        [
            ratio(
                f"min-char-rnn, {streams} streams, over the NumPy original",
                speedups,
                15.0,
                speeds,
                samples.trust,
            )
        ],
        options,
    )


if __name__ == "__main__":
    main()
