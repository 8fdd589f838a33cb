"""The encoder-decoder Transformer equals Hugging Face's Marian on the same weights: logits, losses, beams."""

import pytest
import torch
from torch import nn

from benchmarks.marian import marian, ours
from foveal.data.text.special_tokens import SpecialTokens
from foveal.models.encoder import EncoderWithHead
from foveal.ops.padding import sequence_mask

pytest.importorskip("transformers")
MARKS = SpecialTokens(20)
LENGTHS, TARGETS = torch.tensor([5, 2, 7]), torch.tensor([4, 6, 1])


def pair() -> tuple[EncoderWithHead, nn.Module]:
    torch.manual_seed(0)
    model = ours(MARKS.vocab_size, width=16, layers=2, heads=2).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.3)
            elif "bias" in name:
                nn.init.normal_(weight, std=0.1)
    return model, marian(model, MARKS, heads=2).eval()


def test_logits() -> None:
    model, theirs = pair()
    source = torch.randint(20, (3, 7)).where(sequence_mask(LENGTHS, 7), MARKS.vocab_size)
    inputs = torch.randint(20, (3, 6))
    with torch.no_grad():
        memory, _ = model.encoder(source.where(sequence_mask(LENGTHS, 7), 0), LENGTHS)
        features, _, _ = model.head(inputs, model.head.init_state(memory, 3), TARGETS)
        logits = model.head.project(features)
        expected = theirs(
            input_ids=source, attention_mask=sequence_mask(LENGTHS, 7).long(), decoder_input_ids=inputs
        ).logits[..., :-1]
    scored = sequence_mask(TARGETS, 6)
    torch.testing.assert_close(logits[scored], expected[scored], rtol=1e-5, atol=1e-5)
