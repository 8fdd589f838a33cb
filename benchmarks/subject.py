"""Our side of a training benchmark: the trainer's own step on random tokens."""

import numpy as np
import torch

from foveal.config import Config
from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model, resolve_config
from foveal.training.optim import Optimizer
from foveal.training.step import train_step

VOCABULARY = CharacterTokenizer(map(chr, range(32, 97)))
"""65 characters, the number in tiny Shakespeare."""


class Subject:
    """A model with its trainer step. A call is one update. States are carried on if the config says so."""

    def __init__(self, config: Config, batches: int = 16):
        self.config = config = resolve_config(config, torch.device("cpu"))
        task = task_of(config).bind(VOCABULARY)
        self.model = build_model(task, torch.device("cpu"))
        task = task.bind(VOCABULARY, self.model)
        self.objective = task.objective()
        self.optimizer = Optimizer(self.model, config.optimizer)
        size = (batches + 1) * config.data.batch_tokens
        tokens = np.random.default_rng(0).integers(0, VOCABULARY.size, size, dtype=np.int32)
        self.task, self.data = task, tokens
        train_batches = task.train_batches(tokens)
        all_batches = [train_batches.batch(0, index) for index in range(train_batches.per_epoch)]
        self.tokens = max(batch.tokens for batch in all_batches)
        # If windows do not divide evenly, one batch has a row less; comparisons leave it out.
        self.batches = [batch for batch in all_batches if batch.tokens == self.tokens][:batches]
        self.parameters = sum(weight.numel() for weight in self.model.parameters())
        self._step, self._carries = 0, [None]

    def __call__(self) -> float:
        result, self._carries = train_step(
            self.model,
            self.objective,
            self.optimizer,
            [self.batches[self._step % len(self.batches)]],
            self._carries,
            lr=self.config.optimizer.lr,
            seed=(0, self._step),
            precision=self.config.training.precision,
        )
        self._step += 1
        return result.loss
