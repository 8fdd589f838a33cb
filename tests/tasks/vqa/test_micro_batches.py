"""Micro-batches equal one big batch, though each is padded for itself and some rows have no loss."""

import pytest
import torch

from foveal.data.core.batching import ExampleBatch
from foveal.data.pairs.labels import LabelProcessor
from foveal.data.pairs.nothing import NoTargetProcessor
from foveal.data.pairs.pair import PairProcessor
from foveal.tasks.registry import task_of
from foveal.tasks.vqa.answer_targets import IGNORE_INDEX
from tests.support.micro_batches import check_same_step, trained_step
from tests.support.vqa_model import IMAGE_AND_TEXT, randomized, vqa_batch, vqa_config


def rows_of(given: ExampleBatch, rows: list[int]) -> ExampleBatch:
    """These rows alone, without the images and the padding that only others need."""
    which = torch.tensor(rows)
    lengths = {name: held if name == "choice" else held[which] for name, held in given.lengths.items()}
    images, of = given.columns["source_of"][which].unique(return_inverse=True)
    columns = {
        "source": given.columns["source"][images],
        "source_of": of,
        "choice": given.columns["choice"],
    }
    columns["label"] = given.columns["label"][which]
    for name in ("question", "history", "choices"):
        columns[name] = given.columns[name][which, : int(lengths[name].max())]
    return ExampleBatch(which, columns, lengths, torch.ones(len(which), dtype=torch.int64))


@pytest.mark.parametrize("name", ["vqa", "vqa-multiple-choice"])
def test_questions_of_which_one_has_an_answer_that_is_not_known(name: str) -> None:
    """It has no loss, and does not count among those over which the mean is taken."""
    processor = PairProcessor(
        IMAGE_AND_TEXT, LabelProcessor(("x", "y", "z")) if name == "vqa" else NoTargetProcessor()
    )
    task, whole = task_of(vqa_config(name)).bind(processor), vqa_batch()
    whole.columns["label"][0] = IGNORE_INDEX
    objectives = [task.bind(processor, randomized(task.new_model())).objective() for _ in range(3)]
    few = check_same_step(objectives[:2], [rows_of(whole, [0, 2]), rows_of(whole, [1])], whole)
    assert few.loss == pytest.approx(trained_step(objectives[2], [rows_of(whole, [1, 2])]).loss, abs=1e-10)
