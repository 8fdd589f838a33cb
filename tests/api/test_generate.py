"""Generation over any model with the contract of a decoder: ours, a module of torch, and errors."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import foveal
from foveal.api.generate import generate, stream
from foveal.data.text.tokenizers import make_tokenizer
from tests.support.docstring_examples import examples, failures

V = 20
Q = [[1, 2, 3], [4, 5]]


class TorchLSTM(nn.Module):
    """torch's LSTM under our contract, for prompts of equal length."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(V, 8), nn.LSTM(8, 16, batch_first=True)
        self.projection, self.dropout = nn.Linear(16, V), nn.Dropout(0.5)

    def init_state(self, memory: Any, batch: int, capacity: int | None = None) -> Any:
        return {"h": torch.zeros(batch, 16), "c": torch.zeros(batch, 16)}

    def forward(self, tokens: Tensor, state: Any, lengths: Tensor | None = None) -> Any:
        y, (h, c) = self.lstm(self.embedding(tokens), (state["h"][None], state["c"][None]))
        return self.dropout(y), {"h": h[0], "c": c[0]}, {}

    def project(self, features: Tensor) -> Tensor:
        return self.projection(features)

    def continued(self, prompt: list[int], count: int) -> list[int]:
        """Return the likeliest tokens, each computed from all tokens before it."""
        tokens = list(prompt)
        with torch.no_grad():
            for _ in range(count):
                features, _, _ = self(torch.tensor([tokens]), self.init_state(None, 1))
                tokens.append(int(self.project(features[0, -1]).argmax()))
        return tokens[len(prompt) :]


@pytest.fixture(scope="module")
def model() -> TorchLSTM:
    torch.manual_seed(0)
    return TorchLSTM()


@pytest.fixture(scope="module")
def language_model() -> nn.Module:
    return foveal.create_model("attention", vocabulary=V, settings={"model.width": 16, "model.layers": 1})


def test_a_module_of_torch(model: TorchLSTM) -> None:
    model.eval()
    expected = model.continued([1, 2, 3], 6)
    for prompts in ([1, 2, 3], [[1, 2, 3]], np.array([1, 2, 3]), torch.tensor([[1, 2, 3]])):
        (text,) = generate(model, prompts, tokens=6, temperature=0.0)
        assert list(text.tokens) == expected
    assert text.text.split() == [str(token) for token in expected]
    (searched,) = generate(model, [1, 2, 3], tokens=6, beam=1)
    assert list(searched.tokens) == expected
    assert len(generate(model, [1, 2, 3], tokens=4, beam=4, best=3)) == 3


def test_mode_of_all_parts_is_kept(model: TorchLSTM) -> None:
    """Dropout would give other tokens."""
    model.train()
    model.lstm.eval()
    *_, last = stream(model, [1, 2, 3], tokens=3, temperature=0.0)
    assert [part.training for part in (model, model.dropout, model.lstm)] == [True, True, False]
    assert last.finished is not None
    model.eval()
    assert list(last.finished.tokens) == model.continued([1, 2, 3], 3)


def test_several_prompts_and_samples(language_model: nn.Module) -> None:
    texts = generate(language_model, Q, tokens=5, samples=2, seed=1)
    alone = generate(language_model, [Q[1]], tokens=5, samples=2, seed=1)
    assert [text.tokens for text in texts[2:]] == [text.tokens for text in alone]
    assert len({text.tokens for text in texts}) == 4
    pieces = [*stream(language_model, Q, tokens=5, samples=2, seed=1)]
    finished = {piece.row: piece.finished for piece in pieces if piece.finished}
    assert [finished[row] for row in range(4)] == texts
    assert "".join(piece.text for piece in pieces if piece.row == 0) == texts[0].text
    (ended,) = generate(language_model, [1], tokens=200, end_tokens=range(V // 2))
    assert ended.finish_reason == "end"
    assert ended.tokens[-1] < V // 2


def test_texts(language_model: nn.Module) -> None:
    tokenizer = make_tokenizer("character", 100, ["abcdefghijklmnopqrst"])
    (text,) = generate(language_model, "abc", tokenizer=tokenizer, tokens=300, stop=["a"])
    assert text.finish_reason == "stop"
    assert set(text.text) <= set("bcdefghijklmnopqrst")
    assert text == generate(language_model, ["abc"], tokenizer=tokenizer, tokens=300, stop=["a"])[0]


def test_a_decoder_over_a_memory() -> None:
    model = foveal.create_model("transduction", vocabulary=V).eval()
    sources, begin, end = torch.tensor([[1, 2, 3, V + 1]]), V, V + 1
    with torch.no_grad():
        memory, _ = model.encode({"source": sources}, {})  # type: ignore[operator]
        (text,) = generate(model, [[begin]], memory=memory, tokens=4, temperature=0.0, end_tokens=[end])
        logits = model(sources, None, torch.tensor([[begin, *text.tokens[:-1]]]))
    assert logits[0].argmax(-1).tolist() == list(text.tokens)


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([], {}, "no prompts"),
        ([[1], []], {}, "prompt 2 is empty"),
        ("abc", {}, "prompts of text need a tokenizer"),
        ([1], {"tokens": 0}, "must be at least 1"),
        ([1], {"beam": 2, "temperature": 0.5}, "searches for the likeliest texts"),
        ([1], {"top_p": 0.0}, "top-p 0.0: must be above 0"),
        ([1], {"samples": 2, "temperature": 0.0}, "always generates the same"),
    ],
)
def test_errors(model: TorchLSTM, prompts: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(foveal.UserError, match=message) as error:
        generate(model, prompts, **options)
    assert "\n" not in str(error.value)
    if "beam" not in options:
        with pytest.raises(foveal.UserError, match=message):
            stream(model, prompts, **options)


@pytest.mark.parametrize("token", [-1, V])
def test_unknown_tokens(language_model: nn.Module, token: int) -> None:
    with pytest.raises(foveal.UserError, match=f"prompt 2 has token ids from .*{token}.* knows 0 to {V - 1}"):
        generate(language_model, [[1], [2, token]])


def test_a_model_without_the_contract() -> None:
    with pytest.raises(foveal.UserError, match=r"Linear can't generate: it lacks init_state\(memory, batch"):
        generate(nn.Linear(2, 2), [1])
    classifier = foveal.create_model("linear", size=4)
    with pytest.raises(foveal.UserError, match="ClassificationHead can't generate"):
        generate(classifier, [1])


@pytest.mark.parametrize("function", [generate, stream])
def test_examples(function: Any) -> None:
    assert not failures(function.__name__, examples(function), {"foveal": foveal})
