"""`foveal.Trainer`: any module, any batches, and what can't be trained on."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import foveal
from foveal.core.callbacks import Callback, Record
from foveal.core.errors import RunFailed, UserError
from tests.support.command_line import refuse, succeed
from tests.support.fixtures import quick_disk
from tests.support.module_training import (
    BATCH,
    Net,
    Stream,
    batches,
    ending,
    examples,
    loss,
    loss_and_accuracy,
    make_net,
    train,
    valid,
)
from tests.support.registries import restored_registries

__all__ = ["quick_disk"]
PLAIN = {"optimizer.clip_norm": 0, "schedule.name": "constant", "schedule.warmup_steps": 0}


@pytest.fixture(autouse=True)
def no_curves(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training."""
    if "curves" not in request.node.name:
        monkeypatch.setattr("foveal.api.own_module.trainer.write_curves", lambda folder, name: None)


def test_it_is_a_loop_of_torch() -> None:
    """Loss by loss, with torch's AdamW."""
    net = nn.Linear(3, 2)
    reference = nn.Linear(3, 2)
    reference.load_state_dict(net.state_dict())
    settings = PLAIN | {"optimizer.beta2": 0.999}
    run = foveal.Trainer(net, loss, batches(), budget="9steps", run="run", lr=0.01, settings=settings).run()
    optimizer = torch.optim.AdamW(reference.parameters(), 0.01, weight_decay=0.0)
    losses = []
    for step in range(9):
        optimizer.zero_grad()
        value = loss(reference, batches()[step % 6])
        value.backward()
        optimizer.step()
        losses.append(value.item())
    np.testing.assert_allclose(run.metrics.column("loss"), losses, rtol=1e-5)
    for name, weight in reference.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], weight)
    assert not net.training


def test_the_best_weights_are_in_the_module_afterwards() -> None:
    run = train("run", objective=loss_and_accuracy, valid=valid(), lr=0.5, budget="30steps")
    evaluations = [row for row in run.metrics if row["kind"] == "evaluation"]
    best = min(evaluations, key=lambda row: row["loss"])
    assert (
        run.evaluate().scores
        == run.evaluate(valid()).scores
        == {"loss": best["loss"], "accuracy": best["accuracy"]}
    )
    assert run.config.optimizer.lr == 0.5
    assert repr(run).startswith("ModuleRun('run': model Net, data own batches, accuracy ")


def test_means_weigh_batches_by_their_rows() -> None:
    """The last batch has two rows of 22."""
    run = train("run", budget="1step")
    whole = DataLoader(examples(), 22)
    assert run.evaluate(valid())["loss"] == pytest.approx(run.evaluate(whole)["loss"], rel=1e-6)


def test_accumulated_batches_are_one_large_batch() -> None:
    """Of other sizes, so the weights of batches count; dropout and batch norm would differ."""
    runs = []
    for number, (size, accumulation) in enumerate([(22, 1), (4, 6)]):
        module = nn.Linear(3, 2)
        with torch.no_grad():
            module.weight.fill_(0.1), module.bias.zero_()
        train(f"run{number}", list(DataLoader(examples(), size)), module=module, budget="3steps",
              settings={"training.grad_accumulation": accumulation})  # fmt: skip
        runs.append(module)
    torch.testing.assert_close(*(module.weight for module in runs))


def test_a_weight_of_batches_in_place_of_rows() -> None:
    run = train("run", budget="1step", weight=lambda batch: float(batch[1].sum()))
    expected = sum(loss(run.model, b).item() * b[1].sum().item() for b in batches())
    total = sum(b[1].sum().item() for b in batches())
    assert run.evaluate(batches())["loss"] == pytest.approx(expected / total, rel=1e-6)


class Record3(nn.Module):
    """Reads batches of other forms."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).mean()


class Bag:
    """A batch of a type of its own."""

    def __init__(self, x: Tensor):
        self.x = x


@pytest.mark.parametrize(
    ("make", "read", "rows"),
    [
        (lambda x: x, lambda batch: batch, 4),
        (lambda x: {"a": "text", "x": x}, lambda batch: batch["x"], 4),
        (lambda x: ("text", [x, None]), lambda batch: batch[1][0], 4),
        (lambda x: x.numpy(), torch.from_numpy, 4),
        (lambda x: Bag(x), lambda batch: batch.x, 1),
        (lambda x: [1.0, 2.0], lambda batch: torch.ones(2, 3), 2),
    ],
    ids=["tensor", "dict", "nested", "array", "object", "numbers"],
)
def test_batches_of_any_type(make: Callable[..., Any], read: Callable[..., Tensor], rows: int) -> None:
    source = [make(x) for x, _ in batches()[:3]]
    run = train("run", source, lambda module, b: module(read(b)), module=Record3(), budget="3steps")
    assert run.metrics.column("tokens") == [rows, 2 * rows, 3 * rows]


@pytest.mark.parametrize(
    ("source", "budget", "steps"),
    [
        (lambda: DataLoader(examples(), BATCH), "2epochs", 12),
        (lambda: lambda epoch, index: batches()[index], "2epochs", 6),
        (lambda: DataLoader(Stream(), BATCH), "40tokens", 10),
    ],
)
def test_budgets(source: Callable[[], Any], budget: str, steps: int) -> None:
    more = {"batches_per_epoch": 3} if budget == "2epochs" and steps == 6 else {}
    assert len(train("run", source(), budget=budget, **more).metrics) == steps


def test_a_budget_in_time_and_a_shorter_warmup() -> None:
    run = train("run", budget="0.2s")
    assert len(run.metrics) > 3
    assert train("short", budget="9steps").config.schedule.warmup_steps == 0
    own = train("own", budget="9steps", settings={"schedule": {"warmup_steps": 8}})
    assert own.config.schedule.warmup_steps == 8


class Short:
    """A loader that gives fewer batches than its length says."""

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Iterator[Any]:
        return iter(batches()[:4])


def test_a_loader_that_ends_early_ends_the_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(train("run", Short()).metrics) == 9
    told = capsys.readouterr().err
    assert told.count("train ended after 4 batches, though its length is 6: that is an epoch") == 1


def test_an_exhausted_iterator_is_one_line_and_saved(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError) as error:
        train("run", iter(batches()), settings={"training.grad_accumulation": 4})
    assert str(error.value) == (
        "train is an iterator, and gave all of its 6 batches before the budget was spent: give a list, a "
        "DataLoader, or the function that makes the iterator"
    )
    assert len(train("run", iter(batches() * 10), settings={"training.grad_accumulation": 4}).metrics) == 9


def test_a_finished_run_says_so_and_is_returned(capsys: pytest.CaptureFixture[str]) -> None:
    first = train("run", valid=valid())
    before = ending(Path("run"))
    again = train("run", valid=valid(), module=Net())
    assert "run: finished, with 9 steps: nothing to train" in capsys.readouterr().err
    assert again.evaluate().scores == first.evaluate(valid()).scores
    assert ending(Path("run")) == before


def test_a_registered_callback_hears_and_so_does_any_object(capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []

    class Noisy:
        """No subclass of Callback."""

        def __init__(self, name: str = "named"):
            self.name = name

        def on_step(self, record: Record) -> None:
            heard.append(self.name)

    with restored_registries():
        foveal.register_callback("noisy")(Noisy)
        settings = {"training.callbacks": "noisy"}
        train("run", settings=settings, callbacks=Noisy("given"), log="csv", quiet=True, budget="2steps")
        with pytest.raises(UserError, match=r"a callback, not a logger: settings=\{.*: \"noisy\"\}$"):
            train("other", log="noisy")
    assert heard == ["given", "named"] * 2
    assert Path("run/metrics.csv").exists()
    assert capfd.readouterr() == ("", "")


class Interrupt(Callback):
    def on_step(self, record: Record) -> None:
        if record["step"] == 4:
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_saves_and_returns_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    train("whole")
    capsys.readouterr()
    stopped = train("run", callbacks=[Interrupt()])
    assert len(stopped.metrics) == 4
    stopped_at = "stopped by SIGINT at step 4; everything is saved; run the script again, with run='run'"
    assert stopped_at in capsys.readouterr().err
    train("run")
    assert ending(Path("run")) == ending(Path("whole"))


def test_without_a_name_each_run_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        run = foveal.Trainer(make_net, loss, batches(), budget="5steps", callbacks=[Interrupt()]).run()
        assert run.path == Path(f"runs/net-trainer-{number}")
        assert f"with run='runs/net-trainer-{number}', to go on" in capsys.readouterr().err


@pytest.mark.parametrize("source", [batches, lambda: DataLoader(examples(), 4, shuffle=True)])
def test_a_trainer_runs_again_to_go_on(source: Callable[[], Any]) -> None:
    """After a stop, and after its end."""
    trainer = foveal.Trainer(make_net, loss, source(), budget="9steps", callbacks=[Interrupt()])
    assert [len(trainer.run().metrics) for _ in range(3)] == [4, 9, 9]


def test_numbers_that_are_not_finite_are_refused() -> None:
    def breaks(module: nn.Module, batch: Any) -> Tensor:
        return loss(module, batch) * (float("nan") if module.training else 1.0)

    with pytest.raises(RunFailed, match=r"3 consecutive steps .* in step 3 in the loss; try a lower"):
        train("run", objective=breaks, settings={"training.max_nonfinite_steps": 3})
    with pytest.raises(RunFailed, match="each of the 2 steps gave numbers that are not finite"):
        train("short", objective=breaks, budget="2steps")


class OnlyOnce:
    """Batches that can be read once, and say so by being empty afterwards."""

    def __init__(self) -> None:
        self.left = batches()

    def __iter__(self) -> Iterator[Any]:
        while self.left:
            yield self.left.pop()


def test_nothing_in_the_second_epoch_is_said() -> None:
    with pytest.raises(UserError, match="no batch after the first 6: give a source that can be read again"):
        train("run", OnlyOnce(), budget="9steps")


def test_the_curves_have_no_unit_of_their_own() -> None:
    run = train("run", objective=loss_and_accuracy, valid=valid())
    assert (run.path / "curves.png").read_bytes() == run.curves().png
    assert run.curves().to_dict()["evaluation"][-1].keys() == {"kind", "step", "loss", "accuracy"}


X, Y = torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": lambda: None}, "module: expected a torch.nn.Module or a function that makes one, not No"),
        ({"module": nn.ReLU()}, "module: ReLU has no weight with requires_grad, so nothing to train"),
        ({"module": nn.LazyLinear(2)}, "module: LazyLinear has lazy layers: call it once on a batch before"),
        ({"objective": nn.CrossEntropyLoss()}, "objective: expected a function of (module, batch), not Cros"),
        ({"module": nn.Linear}, "module: a function or class with parameters; give a module, or lambda: M"),
        ({"callbacks": None}, "callbacks: expected objects with methods such as on_step"),
        ({"weight": lambda batch: -1}, "weight: expected a number from 0 on for each batch, not -1"),
        ({"weight": lambda batch: float("nan")}, "weight: expected a number from 0 on for each batch, no"),
        ({"weight": lambda batch: "a"}, "weight: expected a number from 0 on for each batch, not 'a'"),
        ({"weight": lambda batch: 0}, "train: the first batch has no rows, or the weight 0; leave out emp"),
        ({"source": []}, "train is empty: it has no batch"),
        ({"source": (X, Y)}, "train is of tensors, not of batches: give DataLoader(TensorDataset(inputs, ta"),
        ({"source": np.zeros((3, 2))}, "train is of tensors, not of batches"),
        ({"source": TensorDataset(X, Y)}, "train is a Dataset of single examples: give DataLoader(dataset,"),
        ({"source": {"x": X}}, "train: expected batches (a DataLoader, a list, any iterable), not dict"),
        ({"source": 3}, "train: expected batches (a DataLoader, a list, any iterable), not int"),
        ({"source": lambda epoch, index: X}, "train is a function of (epoch, index), which has no length: g"),
        ({"source": lambda epoch: X}, "train is a function of other parameters than (epoch, index) or of no"),
        ({"valid": []}, "valid is empty: it gave no batch; leave it out, or give batches"),
        ({"valid": lambda epoch, index: X}, "valid is a function of other parameters than nothing"),
        ({"batches_per_epoch": 0}, "batches_per_epoch=0: expected 1 or more"),
        ({"device": "gpu"}, 'device="gpu": not a device'),
        ({"budget": "10 minutes"}, "budget '10 minutes': expected an amount above 0, such as 90s, 3m"),
        ({"lr": -1.0}, "lr=-1.0: input should be greater than 0"),
        ({"settings": {"lr": 1}}, "unknown key 'lr'; did you mean lr=VALUE?"),
        ({"settings": {"optimizer.rate": 1}}, "optimizer.rate is now optimizer.lr"),
        ({"settings": {"optimizer.lrs": 1}}, "unknown key 'optimizer.lrs'; did you mean 'optimizer.lr'?"),
        ({"settings": {"model.width": 1}}, "model.width is not read by foveal.Trainer; known: optimizer, sc"),
        ({"settings": {"training.freeze": "norms"}}, "training.freeze is not read by foveal.Trainer: set re"),
        ({"settings": {"optimizer.momentum": 0.5}}, "optimizer.momentum is not read, since optimizer.name=a"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)  # fmt: skip
@pytest.mark.usefixtures("types_unchecked")
def test_what_can_not_be_trained_is_refused_before_anything_is_written(options: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        train("run", **options)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda loss: loss.expand(4), "objective returned a loss of shape [4]: take its mean, or return the"),
        (lambda loss: loss.item(), "objective returned float 0."),
        (lambda loss: None, "objective returned None: return the loss, a scalar tensor, or (loss, {'metric'"),
        (lambda loss: {"loss": loss}, "objective returned a dict with 'loss': return the loss"),
        (lambda loss: (loss, loss, loss), "objective returned a tuple of 3: return the loss"),
        (lambda loss: (loss, 1.0), "objective returned (loss, float 1.0): return the loss"),
        (lambda loss: (loss, {"a": loss.expand(4)}), "objective returned the metric 'a' as a tensor of shap"),
        (lambda loss: (loss, {"step": 1}), "objective returned a metric 'step', which the log has already"),
        (lambda loss: loss.detach(), "objective returned a loss without a gradient: compute it from what th"),
        (lambda loss: (loss * 0).long(), "objective returned a loss of torch.int64, which has no gradient"),
        (lambda loss: X.clone().requires_grad_().mean(), "no trained weight has a gradient: compute the los"),
    ],
)  # fmt: skip
def test_what_is_no_loss_is_refused_before_anything_is_written(result: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        train("run", objective=lambda module, batch: result(loss(module, batch)))
    assert str(error.value).startswith(message)
    assert not Path("run").exists()


def test_epochs_of_an_unknown_length_are_refused() -> None:
    with pytest.raises(
        UserError, match="budget='2epochs': train has no length, so its epochs can't be planned"
    ):
        train("run", DataLoader(Stream(), BATCH), budget="2epochs")
    with pytest.raises(UserError, match="train is empty: it gave no batch"):
        train("run", iter([]))
    assert not Path("run").exists()


def test_errors_of_the_users_own_code_are_their_own() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        train("run", module=nn.Linear(5, 2))


def test_other_settings_and_other_runs_are_refused(tmp_path: Path) -> None:
    train("run", lr=0.1)
    with pytest.raises(UserError, match=r"run: made with optimizer\.lr=0\.1, not 0\.2: choose another run="):
        train("run", lr=0.2)
    with pytest.raises(UserError, match=r"start\.safetensors: does not fit the model: "):
        train("run", module=Net(7))
    Path("folder").mkdir()
    with pytest.raises(UserError, match="folder: not a Foveal run"):
        train("folder")


def test_the_commands_know_what_such_a_run_is() -> None:
    train("run")
    for command in (
        ["resume", "run"],
        ["generate", "run"],
        ["predict", "run", "x"],
    ):
        assert "run: trained by foveal.Trainer, so its model is a module of your own code" in refuse(*command)
    with pytest.raises(UserError, match=r"this runs code, .*: give trust_plugin=True to run it"):
        foveal.load("run")
    with pytest.raises(UserError, match=r"trained by foveal\.Trainer"):
        foveal.Run("run").predict(["x"])
    assert "its module can't be imported: make_net" not in refuse("evaluate", "run")


def test_evaluate_imports_the_code_if_it_is_trusted(capsys: pytest.CaptureFixture[str]) -> None:
    run = foveal.Trainer(make_net, loss_and_accuracy, batches(), valid, budget="9steps", run="run").run()
    line = refuse("evaluate", "run")
    assert "this runs code, tests.support.module_training:make_net, tests.support" in line
    assert line.endswith("give --trust-plugin to run it\n")
    told = succeed("evaluate", "run", "--trust-plugin")
    expected = run.evaluate()
    opened = foveal.load("run", trust_plugin=True)
    assert opened.evaluate().scores == run.evaluate(valid()).scores == expected.scores
    assert torch.equal(*(each.model.state_dict()["last.weight"] for each in (opened, run)))
    assert opened.metrics.to_dict() == run.metrics.to_dict()
    assert opened.config == run.config
    assert f"validation  loss {expected['loss']:.4f}, accuracy {expected['accuracy']:.4g}" in told.out
    assert "in the training" not in told.err
    assert "leave out DATA" in refuse("evaluate", "run", "x.csv", "--trust-plugin")


@pytest.mark.parametrize(
    ("module", "objective", "held_out", "reason"),
    [
        (Net(), loss, valid(), "its valid can't be imported: valid is no function that makes the batches"),
        (nn.Sequential(nn.Linear(3, 2)), loss, valid, "its module can't be imported: Sequential is made of"),
        (nn.Linear(3, 2), lambda module, batch: loss(module, batch), valid, "its module can't be imported:"),
        (Net(), lambda module, batch: loss(module, batch), valid, "its objective can't be imported: <lambda"),
    ],
)  # fmt: skip
def test_evaluate_says_why_it_can_not(module: Any, objective: Any, held_out: Any, reason: str) -> None:
    foveal.Trainer(module, objective, batches(), held_out, budget="1step", run="run").run()
    assert reason in refuse("evaluate", "run")


def test_code_of_a_module_that_is_none_is_said() -> None:
    """As in a cell of a notebook, or in text that is executed."""
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec("def objective(module, batch): return module(batch[0]).mean()", names)
    foveal.Trainer(make_net, names["objective"], batches(), valid, budget="1step", run="run").run()
    assert "its objective can't be imported: objective is in the script itself" in refuse("evaluate", "run")


def test_evaluate_says_if_the_code_makes_another_module(capsys: pytest.CaptureFixture[str]) -> None:
    foveal.Trainer(Net(7), loss, batches(), valid, budget="1step", run="run").run()
    assert "Net() makes another module than was trained" in refuse("evaluate", "run", "--trust-plugin")


def test_a_loss_of_the_code_of_today_that_differs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    foveal.Trainer(make_net, loss, batches(), valid, budget="1step", run="run").run()

    def changed(module: nn.Module, batch: Any) -> Tensor:
        return 2 * F.cross_entropy(module(batch[0]), batch[1])

    monkeypatch.setattr("tests.support.module_training.loss", changed)
    told = succeed("evaluate", "run", "--trust-plugin", "--json")
    assert "in the training: the code or the data have changed" in told.err
