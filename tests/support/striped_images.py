"""Images of stripes in one bright quadrant."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

SIDE, PATCH, PLACES, CLASSES = 8, 4, 4, 2


@dataclass(frozen=True)
class StripedImages:
    """One quadrant is bright and contains the class's stripes. The others contain faint random stripes."""

    pictures: Tensor
    labels: Tensor
    stream_starts: Tensor

    @property
    def tokens(self) -> int:
        return len(self.labels)


def striped_images(rows: int, first: bool) -> StripedImages:
    stripes = (
        torch.stack([torch.arange(PATCH).expand(PATCH, -1), torch.arange(PATCH)[:, None].expand(-1, PATCH)])
        % 2
    )
    labels, places = torch.randint(CLASSES, (rows,)), torch.randint(PLACES, (rows,))
    kinds = torch.randint(CLASSES, (rows, PLACES)).scatter(1, places[:, None], labels[:, None])
    bright = F.one_hot(places, PLACES)[:, :, None, None] * 1.5 + 0.5
    quadrants = stripes[kinds] * bright
    rows_of = quadrants.view(rows, 2, 2, PATCH, PATCH).transpose(2, 3).reshape(rows, SIDE, SIDE)
    return StripedImages(rows_of.float(), labels, torch.full((rows,), first))
