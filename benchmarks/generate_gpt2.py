"""Generation at GPT-2-small's size, greedy, against Hugging Face's `generate` with its cache.

Batch 1, float32, random weights, the same on both sides; 64 tokens after a prompt of 32, which have to be
equal. Mamba and RWKV of that size likewise, and the time of a token after 10 and after 10,000 tokens, which
must not grow.
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers import peer
from benchmarks.timing import Figure, interleave, options, ratio, report
from foveal.config import ModelConfig
from foveal.core.runtime import seed_everything
from foveal.core.state import State, select_rows
from foveal.generation.decoding_loop import generate, next_logits
from foveal.generation.sampling import GREEDY
from foveal.heads.decoder_lm import DecoderLM
from foveal.interop.huggingface.language_models import write_language_model
from foveal.models.decoder import language_model

VOCABULARY, CONTEXT, WIDTH = 50257, 1024, 768
GPT2_SMALL = {
    "mixers": "attention",
    "layers": 12,
    "width": WIDTH,
    "attention": {"heads": 12},
    "positions": {"kind": "learned"},
    "feedforward": "mlp",
    "activation": "gelu-tanh",
    "norm": "layer",
    "residual": True,
    "tie_embeddings": True,
    "projection_bias": False,
}
MAMBA_130M = {
    "mixers": "mamba",
    "layers": 24,
    "width": WIDTH,
    "norm": "rms",
    "residual": True,
    "tie_embeddings": True,
    "projection_bias": False,
}
RWKV_SAME = {
    "mixers": "rwkv",
    "layers": 12,
    "width": WIDTH,
    "feedforward": "channel-mixing",
    "norm": "layer",
    "residual": True,
    "embedding_norm": True,
    "tie_embeddings": True,
    "projection_bias": False,
}


def random_model(config: ModelConfig) -> DecoderLM:
    """Matrices large enough that the text does not repeat one token, which would compare nothing."""
    seed_everything("weights")
    model = language_model(config, VOCABULARY, CONTEXT).eval()
    for name, weight in model.named_parameters():
        if "table" not in name and weight.dim() == 2 and min(weight.shape) >= WIDTH:
            nn.init.normal_(weight, std=0.1)
    return model


def hugging_face(model: DecoderLM, config: ModelConfig) -> Any:
    """The same model, as transformers opens it; then in memory of its own, no longer mapped from a file."""
    transformers = peer("transformers", "transformers")
    with TemporaryDirectory() as parent:
        write_language_model(Path(parent) / "model", model, config, CONTEXT)
        opened = transformers.AutoModelForCausalLM.from_pretrained(Path(parent) / "model")
        return deepcopy(opened).eval()


def compare(what: str, config: ModelConfig, model: DecoderLM, goal: float | None, quick: bool) -> Figure:
    """Our tokens per second over theirs, for the same tokens."""
    tokens = 6 if quick else 64
    prompt = torch.randint(VOCABULARY, (1, 32), generator=torch.Generator().manual_seed(0))
    theirs = hugging_face(model, config)

    def ours_run() -> list[int]:
        written = generate(model, [prompt[0].numpy()], [""], tokens, GREEDY)
        return [each.token for each in written]

    def theirs_run() -> list[int]:
        with torch.inference_mode():
            mask = torch.ones_like(prompt)
            written = theirs.generate(prompt, attention_mask=mask, max_new_tokens=tokens, do_sample=False)
        return written[0, prompt.shape[1] :].tolist()

    mine, expected = ours_run(), theirs_run()
    assert mine == expected, f"{what}: ours wrote {mine}, Hugging Face {expected}"
    rounds = 7 if goal else 3
    samples = interleave({"ours": ours_run, "theirs": theirs_run}, rounds, seconds=0.0, quick=quick)
    speeds = [f"{tokens / samples.median(name):.3g}" for name in ("ours", "theirs")]
    parameters = sum(weight.numel() for weight in model.parameters())
    return ratio(
        f"Generation with {what} over Hugging Face's generate, batch 1, float32, {tokens} tokens",
        samples.speedup("ours", "theirs"),
        goal,
        f"{speeds[0]} against {speeds[1]} tokens/s, the same tokens, {len(set(mine))} of them different",
        f"{parameters / 1e6:.0f}M parameters",
        samples.trust,
    )


def read(model: DecoderLM, length: int) -> State:
    """The state after so many random tokens."""
    tokens = torch.randint(VOCABULARY, (1, length), generator=torch.Generator().manual_seed(1))
    state = model.init_state(None, 1)
    with torch.inference_mode():
        for chunk in tokens.split(500, 1):
            _, state, _ = model(chunk, state)
    return state


def writer(model: DecoderLM, state: State, tokens: int) -> Callable[[], Tensor]:
    """Writes `tokens` tokens, each time from the same state."""

    @torch.inference_mode()
    def run() -> Tensor:
        here, token = select_rows(state, torch.zeros(1, dtype=torch.long)), torch.zeros(1, dtype=torch.long)
        for _ in range(tokens):
            features, here, _ = model(token[:, None], here)
            token = next_logits(model, features[:, 0]).argmax(-1)
        return token

    return run


def measure_growth(what: str, model: DecoderLM, quick: bool) -> Figure:
    """The time of a token late in a text over that of an early one."""
    positions, tokens = ((10, 40), 2) if quick else ((10, 10_000), 16)
    runs = {f"{at}": writer(model, read(model, at), tokens) for at in positions}
    samples = interleave(runs, rounds=7, quick=quick)
    early, late = runs
    times = " and ".join(f"{1e3 * samples.median(name) / tokens:.3g} ms" for name in runs)
    return ratio(
        f"Generation with {what}: time of a token at position {late} over that at {early}",
        samples.speedup(early, late),
        1.1,
        times,
        samples.trust,
        at_most=True,
    )


def measure(what: str, settings: dict[str, object], goal: float | None, quick: bool) -> list[Figure]:
    config = ModelConfig.model_validate(settings | ({"layers": 2} if quick else {}))
    model = random_model(config)
    figures = [compare(what, config, model, goal, quick)]
    if model.bounded:
        figures.append(measure_growth(what, model, quick))
    return figures


if __name__ == "__main__":
    given = options(__doc__)
    report(
        [
            *measure("GPT-2 small", GPT2_SMALL, 2.0, given.quick),
            *measure("Mamba", MAMBA_130M, None, given.quick),
            *measure("RWKV", RWKV_SAME, None, given.quick),
        ],
        given,
    )
