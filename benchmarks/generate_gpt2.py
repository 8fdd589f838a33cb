"""Greedy generation at GPT-2-small's size, against Hugging Face's `generate` with its cache.

Batch 1, float32, the same random weights on both sides. Both generate 64 tokens after a prompt of 32, and the
tokens must be equal. Mamba and RWKV of that size are measured too, with the time of a token after 10 and
after 10,000 tokens, which must not grow.
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers import peer
from benchmarks.timing import Measurement, interleave, parse_options, ratio, report
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
RWKV_SAME_SIZE = {
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
    """Return a model with matrices large enough that the text does not repeat a single token."""
    seed_everything("weights")
    model = language_model(config, VOCABULARY, CONTEXT).eval()
    for name, weight in model.named_parameters():
        if "table" not in name and weight.dim() == 2 and min(weight.shape) >= WIDTH:
            nn.init.normal_(weight, std=0.1)
    return model


def hugging_face(model: DecoderLM, config: ModelConfig) -> Any:
    """Return the same model as the transformers package opens it, copied from the mapped file into memory."""
    transformers = peer("transformers", "transformers")
    with TemporaryDirectory() as parent:
        write_language_model(Path(parent) / "model", model, config, CONTEXT)
        loaded = transformers.AutoModelForCausalLM.from_pretrained(Path(parent) / "model")
        return deepcopy(loaded).eval()


def compare(
    title: str, config: ModelConfig, model: DecoderLM, goal: float | None, quick: bool
) -> Measurement:
    """Measure our tokens per second over theirs, for the same tokens."""
    tokens = 6 if quick else 64
    prompt = torch.randint(VOCABULARY, (1, 32), generator=torch.Generator().manual_seed(0))
    theirs = hugging_face(model, config)

    def run_ours() -> list[int]:
        events = generate(model, [prompt[0].numpy()], [""], tokens, GREEDY)
        return [event.token for event in events]

    def run_theirs() -> list[int]:
        with torch.inference_mode():
            mask = torch.ones_like(prompt)
            tokens_after_prompt = theirs.generate(
                prompt, attention_mask=mask, max_new_tokens=tokens, do_sample=False
            )
        return tokens_after_prompt[0, prompt.shape[1] :].tolist()

    our_tokens, expected = run_ours(), run_theirs()
    assert our_tokens == expected, f"{title}: ours generated {our_tokens}, Hugging Face {expected}"
    rounds = 7 if goal else 3
    samples = interleave({"ours": run_ours, "theirs": run_theirs}, rounds, seconds=0.0, quick=quick)
    speeds = [f"{tokens / samples.median(name):.3g}" for name in ("ours", "theirs")]
    parameters, different = sum(weight.numel() for weight in model.parameters()), len(set(our_tokens))
    return ratio(
        f"Generation with {title} over Hugging Face's generate, batch 1, float32, {tokens} tokens",
        samples.speedup("ours", "theirs"),
        goal,
        f"{speeds[0]} against {speeds[1]} tokens/s, the same tokens, {different} of them different",
        f"{parameters / 1e6:.0f}M parameters",
        samples.trust,
    )


def state_after(model: DecoderLM, length: int) -> State:
    """Return the state after `length` random tokens."""
    tokens = torch.randint(VOCABULARY, (1, length), generator=torch.Generator().manual_seed(1))
    state = model.init_state(None, 1)
    with torch.inference_mode():
        for chunk in tokens.split(500, 1):
            _, state, _ = model(chunk, state)
    return state


def generator(model: DecoderLM, state: State, tokens: int) -> Callable[[], Tensor]:
    """Return a function that generates `tokens` tokens, each time from the same state."""

    @torch.inference_mode()
    def run() -> Tensor:
        current, token = (
            select_rows(state, torch.zeros(1, dtype=torch.long)),
            torch.zeros(1, dtype=torch.long),
        )
        for _ in range(tokens):
            features, current, _ = model(token[:, None], current)
            token = next_logits(model, features[:, 0]).argmax(-1)
        return token

    return run


def measure_growth(title: str, model: DecoderLM, quick: bool) -> Measurement:
    """Measure the time of a token late in a text over that of an early token."""
    positions, tokens = ((10, 40), 2) if quick else ((10, 10_000), 16)
    runs = {f"{at}": generator(model, state_after(model, at), tokens) for at in positions}
    samples = interleave(runs, rounds=7, quick=quick)
    early, late = runs
    times = " and ".join(f"{1e3 * samples.median(name) / tokens:.3g} ms" for name in runs)
    return ratio(
        f"Generation with {title}: time of a token at position {late} over that at {early}",
        samples.speedup(early, late),
        1.1,
        times,
        samples.trust,
        at_most=True,
    )


def measure(title: str, settings: dict[str, object], goal: float | None, quick: bool) -> list[Measurement]:
    config = ModelConfig.model_validate(settings | ({"layers": 2} if quick else {}))
    model = random_model(config)
    measurements = [compare(title, config, model, goal, quick)]
    if model.bounded:
        measurements.append(measure_growth(title, model, quick))
    return measurements


if __name__ == "__main__":
    options = parse_options(__doc__)
    report(
        [
            *measure("GPT-2 small", GPT2_SMALL, 2.0, options.quick),
            *measure("Mamba", MAMBA_130M, None, options.quick),
            *measure("RWKV", RWKV_SAME_SIZE, None, options.quick),
        ],
        options,
    )
