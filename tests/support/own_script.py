"""A script of a user, who trains a module of their own."""

SCRIPT = """
import os, sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import foveal

run, *options = sys.argv[1:]
first = os.environ.get("RANK", "0") == "0"
torch.manual_seed(0)
x = torch.randn(90, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
norm = nn.BatchNorm1d(12) if "norm" in options else nn.LayerNorm(12)
width = 12 if first or "module" not in options else 13
net = nn.Sequential(nn.Linear(8, 12), norm, nn.Dropout(0.2), nn.Linear(12, width), nn.Linear(width, 2))


def objective(module, batch):
    logits = module(batch[0])
    return F.cross_entropy(logits, batch[1]), {"accuracy": (logits.argmax(-1) == batch[1]).float().mean()}


other = not first and "batches" in options
train = DataLoader(data, batch_size=16 - other, shuffle=True)
settings = {"training.slots": 2} if "slots" in options else {}
budget = "9steps" if "short" in options else "15steps"
trainer = foveal.Trainer(
    net, objective, train, DataLoader(data, batch_size=20), budget=budget, lr=0.01, run=run, settings=settings
)
trainer.run()
"""
