"""A small random BERT in Hugging Face's files."""

from pathlib import Path

import pytest
import torch
from tokenizers import BertWordPieceTokenizer, processors
from tokenizers import Tokenizer as Fast
from torch import nn

D, LAYERS, LONGEST, VOCABULARY = 16, 3, 40, 120
SENTENCES = [
    "The cat sat on the mat, and the rat ran.",
    "A café's naïve mat?",
    "An unforeseeable zyzzyva: 1234",
    "cat",
    "",
]


def pieces() -> Fast:
    """Return a WordPiece tokenizer as BERT's, trained on a few sentences."""
    fast = BertWordPieceTokenizer()
    fast.train_from_iterator(SENTENCES * 3, vocab_size=VOCABULARY - 20, min_frequency=1, show_progress=False)
    marks = [(mark, fast.token_to_id(mark)) for mark in ("[SEP]", "[CLS]")]
    fast.post_processor = processors.BertProcessing(*marks)
    return Fast.from_str(fast.to_str())


def small_bert(path: Path, with_head: bool = True) -> Path:
    """Write the folder of a small random BERT, whose weights are unlike initial ones."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=D,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=40,
        max_position_embeddings=LONGEST,
    )
    model = (transformers.BertForMaskedLM if with_head else transformers.BertModel)(config)
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.7, 0.7)
    model.save_pretrained(path)
    pieces().save(str(path / "tokenizer.json"))
    return path
