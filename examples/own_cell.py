"""A recurrent cell of your own in one file: its equations, and a command that trains it and generates text.

    python examples/own_cell.py FILE.txt RUN

Stop the training with Ctrl-C or `kill -9`; the same command continues it. `project` has the part of the
equations that needs only the input, `step` the rest. Everything else (ragged batches, truncated
backpropagation, checkpoints, generation, beam search) is the same for every cell. The cell's tests are one
row in `tests/support/mixer_rows.py`.
"""

import sys
from pathlib import Path

from torch import Tensor, nn

from foveal.api.training_report import eval_batches, ignore_result, train_and_report
from foveal.core.errors import UserError
from foveal.core.runtime import seed_everything
from foveal.core.signals import Interrupted, SignalHandler
from foveal.data.open import DataPaths
from foveal.generation.sampling import Sampling
from foveal.generation.text_stream import collect_texts, generate_text
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.blocks.stack import Stack
from foveal.layers.embedding import Embedding
from foveal.layers.mixers.recurrent import Recurrent, RecurrentCell
from foveal.store.run import open_run
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import new_run, prepare_run_data
from foveal.ui.console import log


class MinimalGated(RecurrentCell):
    """The minimal gated unit (Zhou et al. 2016): a GRU with a single gate that forgets and resets.

    `f = sigmoid(W_f x + U_f h + b_f)`, `n = tanh(W_n x + U_n (f * h) + b_n)`, `h_t = (1 - f) * h + f * n`.
    """

    def __init__(self, d_in: int, width: int):
        super().__init__()
        self.d_in, self.d_out, self.sizes = d_in, width, {"h": width}
        self.input = nn.Linear(d_in, 2 * width)
        self.forget = nn.Linear(width, width, bias=False)
        self.new = nn.Linear(width, width, bias=False)

    def reset_parameters(self) -> None:
        for linear in (self.input, self.forget, self.new):
            linear.reset_parameters()

    def project(self, x: Tensor) -> Tensor:
        return self.input(x)

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        h = state["h"]
        p_f, p_n = p.chunk(2, 1)
        f = (p_f + self.forget(h)).sigmoid()
        n = (p_n + self.new(f * h)).tanh()
        h = (1 - f) * h + f * n
        return h, {"h": h}


def main(text: str, folder: Path, *settings: str) -> str:
    """Train on a text file, or continue the run in `folder`. Return a generated text.

    `settings` are `key.sub=value`, as on the command line.
    """
    with SignalHandler() as signals:
        if folder.exists():
            run = open_run(folder)
            data = prepare_run_data(run, log)
        else:
            config = load_config("lstm", ["training.budget=500steps", "model.width=128", *settings])
            task = task_of(config)
            data = task.prepare(DataPaths(text), log)
            run = new_run(folder, task, data, DataPaths(text))
        width = run.config.model.width
        seed_everything(run.config.training.seed, "weights")
        stack = Stack([Block(Recurrent(MinimalGated(width, width)))])
        model = DecoderLM(Embedding(data.processor.size, width), stack, width)
        task = task_of(run.config).bind(data.processor, model)
        batches, valid = task.train_batches(data.train), eval_batches(task, data.valid)
        train_and_report(run, task, data, batches, valid, signals, ignore_result)
    events = generate_text(model.eval(), data.processor, ["The "], 200, Sampling(temperature=0.8))
    return collect_texts(events)[0].text


if __name__ == "__main__":
    try:
        print(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
    except Interrupted as stop:
        print(f"{str(stop).partition('; go on')[0]}; the same command goes on", file=sys.stderr)
        raise SystemExit(stop.exit_code) from None
    except UserError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
