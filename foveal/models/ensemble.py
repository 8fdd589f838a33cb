"""Models that learn beside each other and answer together."""

from collections.abc import Sequence

from torch import nn

from foveal.models.encoder import Encoded


class Ensemble(Encoded):
    """Members that are alike but for their weights. The first one's encoder and head stand for all where a
    part is looked at or lent; `others` has the rest."""

    def __init__(self, members: Sequence[Encoded]):
        first, *others = members
        super().__init__(first.encoder, first.head)
        self.others = nn.ModuleList(others)

    @property
    def members(self) -> tuple[Encoded, ...]:
        return (Encoded(self.encoder, self.head), *self.others)


def members_of(model: nn.Module) -> Sequence[nn.Module]:
    """The members of what chooses a label; of any other model the model itself."""
    return model.members if isinstance(model, Encoded) else (model,)
