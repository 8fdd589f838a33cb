"""Words to vectors: the sum of the vectors of a word's forms, beside a convolution over its characters."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.layers.embedding import Embedding

KERNEL = 3
"""Characters that a filter reads."""
FORM_STD = 0.1
"""Standard deviation of the first vectors of forms. It is small, since rare forms stay near their start."""


class WordVectors(nn.Module):
    """Returns `[sum_f e_f ; max_i relu(W [c_(i-1), c_i, c_(i+1)] + b)]` for each word (Ma and Hovy 2016).

    The first `forms` numbers of a word are the ids of its forms f: the word, its beginnings and endings; e_0
    stands for unknown ones. The other numbers are the ids of its characters i, with 0 after the last. The
    vector c_0 is also that of the places just before and just after the word.

    In training each form is unknown with probability `a / (a + count)`, so e_0 learns from rare words, and
    the model does not rely on them (Kiperwasser and Goldberg 2016). `counts` are those of the forms from id 1
    on, and a is `word_dropout`. The vectors e start normal with standard deviation `FORM_STD`, c with 1, W
    with 1 / sqrt(its inputs), and b at zero.

    Example:

        >>> vectors = layers.WordVectors(1, [3, 1], 30, width=16, character_width=8, filters=10)
        >>> words = torch.tensor([[[2, 7, 8, 0], [1, 9, 0, 0]]])  # the form of each word, then its characters
        >>> tuple(vectors(words).shape)
        (1, 2, 26)
    """

    not_hidden = ("table", "convolution")

    def __init__(
        self,
        forms: int,
        counts: Sequence[int],
        characters: int,
        width: int,
        character_width: int,
        filters: int,
        word_dropout: float = 0.0,
    ):
        super().__init__()
        self.forms, self.width = forms, width + filters
        self.table = nn.Parameter(torch.empty(1 + len(counts), width))
        self.characters = Embedding(characters, character_width)
        self.convolution = nn.Conv1d(character_width, filters, KERNEL)
        drop = [0.0, *(word_dropout / (word_dropout + count) for count in counts)]
        self.drop: Tensor
        self.register_buffer("drop", torch.tensor(drop), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table, std=FORM_STD)
        self.characters.reset_parameters()
        nn.init.normal_(self.convolution.weight, std=1 / math.sqrt(KERNEL * self.convolution.in_channels))
        assert self.convolution.bias is not None
        nn.init.zeros_(self.convolution.bias)

    def forward(self, words: Int[Tensor, "B T F"]) -> Float[Tensor, "B T D"]:
        forms, characters = words[:, :, : self.forms], words[:, :, self.forms :]
        B, T, _ = words.shape
        spelled = self.character_vectors(characters.flatten(0, 1)).view(B, T, -1)
        return torch.cat([self.form_vectors(forms), spelled], 2)

    def form_vectors(self, forms: Int[Tensor, "B T F"]) -> Float[Tensor, "B T D"]:
        """Return the sum of the vectors of each word's forms. In training, some forms become unknown."""
        if self.training:
            draws = torch.rand(forms.shape, device=forms.device)
            forms = forms.where(draws >= self.drop[forms], 0)
        return F.embedding(forms, self.table).sum(2)

    def character_vectors(self, characters: Int[Tensor, "N C"]) -> Float[Tensor, "N D"]:
        """Return the largest output of each filter over each word's characters, at least 0."""
        used = characters.ne(0).any(0).nonzero()
        characters = characters[:, : int(used.max()) + 1 if len(used) else 1]
        beside = F.pad(characters, (KERNEL // 2, KERNEL // 2))
        y = self.convolution(self.characters(beside).mT)
        return F.relu(y.masked_fill(characters.eq(0)[:, None], -math.inf).amax(2))
