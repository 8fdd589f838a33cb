"""The decoder head: the tokens so far to logits of the next token, with or without a Memory."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.module_facts import LayerGroups
from foveal.core.state import State
from foveal.distributed.tensor_group import ONE_PART, SplitAxes, TensorGroup, axes_below
from foveal.layers.blocks.moe import AuxLosses, aux_names
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding, OneHot
from foveal.layers.linear import Linear
from foveal.layers.ngram_lookup import NgramLookup
from foveal.ops.cross_entropy import CrossEntropySums, linear_cross_entropy
from foveal.ops.split_cross_entropy import split_cross_entropy


class DecoderLM(nn.Module):
    """An embedding with an optional norm, a stack of blocks, a norm, and the projection to the vocabulary.

    `state = head.init_state(memory, B)` returns the initial state, `features, state, aux = head(tokens,
    state)` reads tokens, and `head.project(features)` returns logits where they are needed. Later calls
    continue from the returned state, without another `init_state`. A `tied` projection shares the embedding's
    table (Press and Wolf 2017).

    With a `lookup`, the vector of what followed the last tokens before is added to the embedding. Tokens
    (B, T) are then looked up as they are read. Inputs (B, T, C) are tokens with their followers
    (`layers.ngram_lookup`), and the state does not remember them.

    The projection (and with it a tied table) starts normal with standard deviation 0.02, so the first loss is
    near `ln V`.

    Example:

        >>> stack = layers.Stack([layers.Block(layers.GRU(16, 16))])
        >>> head = layers.DecoderLM(layers.Embedding(100, 16), stack, 16)
        >>> features, state, aux = head(torch.randint(100, (2, 5)), head.init_state(None, 2))
        >>> tuple(head.project(features).shape)
        (2, 5, 100)
    """

    not_hidden = ("projection",)
    in_stream = ("embedding_norm", "norm")
    group = ONE_PART

    def __init__(
        self,
        embedding: Embedding | OneHot,
        stack: Stack,
        width: int,
        norm: nn.Module | None = None,
        tied: bool = False,
        embedding_norm: nn.Module | None = None,
        projection_bias: bool = True,
        lookup: NgramLookup | None = None,
    ):
        super().__init__()
        self.vocabulary, self.width = embedding.size, width
        self.embedding = embedding
        self.lookup = lookup
        self.embedding_norm = nn.Identity() if embedding_norm is None else embedding_norm
        self.stack = stack
        self.bounded, self.limit = stack.bounded, stack.limit
        self.aux_names = aux_names(stack)
        self.norm = nn.Identity() if norm is None else norm
        self.projection = Linear(width, embedding.size, bias=projection_bias)
        if tied:
            assert isinstance(embedding, Embedding)
            self.projection.weight = embedding.table
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.projection.weight, std=0.02)
        if self.projection.bias is not None:
            nn.init.zeros_(self.projection.bias)

    def init_state(self, memory: Memory | None, batch: int, capacity: int | None = None) -> State:
        """Return the initial state of `batch` rows. `capacity` is the number of tokens to come, if known."""
        state = self.stack.init_state(batch, capacity, memory)
        return state if self.lookup is None else {"lookup": self.lookup.init_state(batch), "stack": state}

    def layer_groups(self) -> LayerGroups:
        """Return the parameters grouped by depth; the embedding lies below the blocks."""
        groups = self.stack.layer_groups()
        below = [self.embedding, self.embedding_norm, *([] if self.lookup is None else [self.lookup])]
        groups[-1] += [weight for module in below for weight in module.parameters()]
        return groups

    def split_among(self, group: TensorGroup) -> SplitAxes:
        """Split the vocabulary of the projection.

        Raises: ValueError: there are too few tokens.
        """
        group.check_rows(self.vocabulary, "tokens")
        self.group = group
        return axes_below("projection", self.projection.split_outputs())

    def forward(
        self, tokens: Int[Tensor, "B T *_"], state: State = None, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State, AuxLosses]:
        """Return the features of each position, the state and `aux`.

        Padding may hold any tokens of the vocabulary.
        """
        stream = self.stack.stream
        if self.lookup is None:
            x = self.embedding_norm(self.embedding(tokens, stream))
            x, state, aux = self.stack(x, state, lengths=lengths)
            return stream.gather(self.norm(x)), state, aux
        state = self.init_state(None, len(tokens)) if state is None else state
        looked_up = state["lookup"]
        if tokens.dim() == 2:
            followers, looked_up = self.lookup.look_up(tokens, looked_up, lengths)
        else:
            tokens, followers = tokens[..., 0], tokens[..., 1:]
        x = self.embedding_norm(self.embedding(tokens, stream) + stream.cut(self.lookup(followers)))
        x, after, aux = self.stack(x, state["stack"], lengths=lengths)
        return stream.gather(self.norm(x)), {"lookup": looked_up, "stack": after}, aux

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Return the logits of the next token."""
        return self.group.join(self.projection(self.group.enter(features)), self.vocabulary)

    def losses(
        self, features: Float[Tensor, "N D"], targets: Int[Tensor, " N"], label_smoothing: float = 0.0
    ) -> CrossEntropySums:
        """Return the loss of `targets` as next tokens, without storing the logits of all positions
        at once."""
        weight, bias = self.projection.weight, self.projection.bias
        if self.group is not ONE_PART:
            return split_cross_entropy(
                features, weight, bias, targets, self.vocabulary, self.group, label_smoothing
            )
        return linear_cross_entropy(features, weight, bias, targets, label_smoothing)
