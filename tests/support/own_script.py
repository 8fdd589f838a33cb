"""Scripts of a user, who trains a module of their own."""

import os
import subprocess
import sys

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
if "later" in options:
    train = [(x[i : i + 16] + (i > 32 and not first), data.tensors[1][i : i + 16]) for i in range(0, 80, 16)]
settings = {"training.slots": 2} if "slots" in options else {}
budget = "9steps" if "short" in options else "15steps"
trainer = foveal.Trainer(
    net, objective, train, DataLoader(data, batch_size=20), budget=budget, lr=0.01, run=run, settings=settings
)
trainer.run()
"""
SHARED_SCRIPT = """
import sys

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import foveal

run, *options = sys.argv[1:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.norm, self.unused = nn.LayerNorm(8), nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.steps = nn.Parameter(torch.arange(3), requires_grad=False)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("mask", torch.ones(8))
        self.register_buffer("order", torch.arange(8), persistent=False)

    def forward(self, tokens):
        x = self.table(tokens)[..., self.order]
        for layer in self.layers:
            x = x + self.scale * layer(self.norm(x) * self.mask).tanh()
        return self.head(x)


def objective(module, batch):
    (tokens,) = batch
    return F.cross_entropy(module(tokens[:, :-1]).flatten(0, 1).double(), tokens[:, 1:].flatten())


torch.manual_seed(0)
data = TensorDataset(torch.randint(11, (40, 6)))
net = Net() if "bfloat16" in options else Net().double()
table = net.table.weight
settings = {"training.slots": 2, "training.precision": "bfloat16" if "bfloat16" in options else "float32"}
trainer = foveal.Trainer(
    net,
    objective,
    DataLoader(data, batch_size=8, shuffle=True),
    DataLoader(data, batch_size=20),
    budget="6steps" if "short" in options else "12steps",
    lr=0.01,
    run=run,
    settings=settings,
    fsdp="whole" not in options,
)
finished = trainer.run()
kept = safetensors.torch.load_file(run + "/model.safetensors")
own = net.state_dict()
assert type(net) is Net and net.table.weight is table and net.head.weight is table
assert all(torch.equal(own[name], value) for name, value in kept.items())
print("evaluated", finished.evaluate()["loss"])
"""

RANKS_SCRIPT = """
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import foveal

run, *options = sys.argv[1:]
torch.manual_seed(0)
x = torch.randn(90, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.dropout, self.head = nn.Dropout(0.2 * ("fsdp" not in options)), nn.Linear(8, 2)

    def forward(self, x):
        for layer in self.layers:
            x = x + self.dropout(layer(x)).tanh()
        return self.head(x)


def loss(module, batch):
    if "fails" in options:
        raise ValueError("no such luck")
    if "wrong" in options:
        return None
    print("computing")
    return F.cross_entropy(module(batch[0]), batch[1])


net = Net()
trainer = foveal.Trainer(
    net,
    lambda module, batch: loss(module, batch),
    DataLoader(data, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(4)),
    DataLoader(data, batch_size=20),
    budget="9steps" if "short" in options else "15steps",
    lr=0.01,
    run=run,
    settings={"training.slots": 2},
    fsdp="fsdp" in options,
    ranks=None if "alone" in options else 2,
)
finished = trainer.run()
print("evaluated", finished.evaluate()["loss"], net.training)
"""


def run_script(processes: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the script mine.py in so many processes."""
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)] if processes > 1 else []
    return subprocess.run(
        [sys.executable, *launcher, "mine.py", *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
