"""A bidirectional language model: one that reads forward and one that reads backward (Peters et al. 2018)."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.module_facts import LayerGroups
from foveal.encoders.elmo import BidirectionalLayers
from foveal.layers.linear import Linear


class BidirectionalLM(nn.Module):
    """Two language models that share the embedding and the projection to the vocabulary (section 3.1).

    The encoder has their layers, whose mixture is an encoder of other tasks.
    """

    not_hidden = ("projection",)

    def __init__(self, encoder: BidirectionalLayers):
        super().__init__()
        self.encoder = encoder
        self.projection = Linear(encoder.embedding.width, encoder.vocabulary)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.projection.weight, std=0.02)
        nn.init.zeros_(self.projection.bias)

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth."""
        return self.encoder.layer_groups()

    def forward(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B T V"]]:
        """Return at each position the logits of the next token from those up to here, and of the token before
        from those from here on."""
        there, back = self.encoder(tokens, lengths)
        return self.projection(there[-1]), self.projection(back[-1])
