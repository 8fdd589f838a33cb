"""A Transformer block as it is usually written in torch: pre-norm, one product for q, k and v."""

from torch import Tensor, nn
from torch.nn import functional as F


class PlainBlock(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.query_key_value(self.attention_norm(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.output(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))
