"""`foveal.Trainer`: trains the user's own module on any iterable of batches."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from foveal.api.arguments import one_or_several
from foveal.api.errors import plain_errors
from foveal.api.interruption import interruptible
from foveal.api.own_module.config import BUDGET, module_config, written_settings
from foveal.api.own_module.cost import measure_module_cost
from foveal.api.own_module.folder import create_module_run, reopen_module_run
from foveal.api.own_module.in_ranks import check_alike, check_module, with_slots
from foveal.api.own_module.launcher import RUN_AGAIN, run_again
from foveal.api.own_module.parts import Module, check_objective, device_of, make_module, module_code
from foveal.api.own_module.processes import Processes, new_processes
from foveal.api.own_module.report import print_setup, print_summary
from foveal.api.own_module.run import ModuleRun, describe_means, load_kept_weights, write_curves
from foveal.api.own_module.session import UNIT
from foveal.api.own_module.sharing import check_sharing, copy_to_share, make_ranks, without_weights
from foveal.api.training.follow import check_versions, check_world, meet
from foveal.core.errors import UserError
from foveal.core.rank import rank, world_size
from foveal.core.runtime import keep_freed_memory
from foveal.core.signals import Interrupted, SignalHandler, TrainingInterrupted
from foveal.distributed.launch import note_run
from foveal.distributed.world import World, joined_world
from foveal.store.checkpoint_list import list_checkpoints
from foveal.store.run import RunFolder, check_run_path, open_run
from foveal.store.run_paths import default_run_path
from foveal.tasks.session import resolve_config
from foveal.tasks.warm_start import load_initial_weights
from foveal.training import trainer as training_loop
from foveal.training.agreement import Agreement
from foveal.training.callback_registry import make_callbacks
from foveal.training.callbacks import CallbackList, check_callbacks
from foveal.training.loggers.registry import check_loggers, make_loggers
from foveal.training.module.batch import WeightFunction
from foveal.training.module.batches import BatchOptions
from foveal.training.module.objective import ModuleObjective, UserObjective
from foveal.training.module.sources import held_out_batches, train_batches
from foveal.training.plan import limit_warmup, parse_budget
from foveal.ui.console import log as console_log
from foveal.ui.console import silence
from foveal.ui.error_line import print_error
from foveal.ui.training_screen import TrainingScreen

DEFAULT_BUDGET, SLOTS = "3m", "training.slots"


class Trainer:
    """Trains a module of any kind on any iterable of batches: `foveal.Trainer(...).run()`.

    The weights are trained as those of Foveal's own models: with clipping, schedules, averaging, budgets,
    refusal of steps that are not finite, logs, curves and checkpoints, in a run folder.
    """

    @plain_errors
    def __init__(
        self,
        module: Module,
        objective: UserObjective,
        train: Any,
        valid: Any = None,
        *,
        budget: str = DEFAULT_BUDGET,
        run: str | Path | None = None,
        lr: float | None = None,
        seed: int | None = None,
        settings: Mapping[str, Any] | None = None,
        log: str | Sequence[str] = (),
        callbacks: object = (),
        device: str = "auto",
        quiet: bool = False,
        batches_per_epoch: int | None = None,
        weight: WeightFunction | None = None,
        fsdp: bool = False,
        ranks: int | None = None,
    ):
        """Check what is given. Nothing is written before `run`.

        Parameters
        ----------
        module
            The module, or a function without parameters that makes it.
        objective
            A function of (module, batch) that returns the loss, a scalar tensor, or a pair of the loss and a
            dict of metrics, such as `(loss, {"accuracy": accuracy})`.
        train
            The batches: a DataLoader, a list or any other iterable; a function of (epoch, index) that returns
            a batch; or a function without parameters that returns an iterable.
        valid
            The batches to evaluate on, which select the best weights.
        budget
            How long to train: 90s, 3m, 2h, 2000steps, 5epochs, 10Mtokens (tokens are rows of batches). An
            existing run with another budget goes on with this one.
        run
            The folder of the run. If it exists, its training goes on; if not given, runs/MODULE-trainer-N is
            made.
        lr, seed
            The highest learning rate, and the seed of all that is drawn.
        settings
            Other settings of optimizer, schedule and training, such as `{"optimizer.clip_norm": 0.5}`.
        log
            Where the metrics go beside the run: "tensorboard", "mlflow", "trackio", "wandb", "csv", or
            several.
        callbacks
            An object with methods of `foveal.Callback`, called after steps, evaluations and checkpoints, or
            several.
        device
            cpu, cuda, mps, or auto, which leaves a module on the GPU where it is.
        quiet
            Print nothing but warnings.
        batches_per_epoch
            The number of batches in an epoch, for a function of (epoch, index).
        weight
            A function of a batch that returns its weight in means, in place of its number of rows.
        fsdp
            Share the weights among the processes, with their gradients and optimizer states (fully sharded
            data parallel). A single process trains as without.
        ranks
            The number of processes on this machine that train together; the weights do not depend on it.
            Each gets a copy of what is given here.

        Raises: UserError: something is of another kind, or a setting does not fit.
        """
        arguments = {
            **{"module": module, "objective": objective, "train": train, "valid": valid, "weight": weight},
            **{"budget": budget, "lr": lr, "seed": seed, "settings": settings, "log": log, "fsdp": fsdp},
            **{"device": device, "quiet": quiet, "batches_per_epoch": batches_per_epoch},
        }
        short = {"optimizer.lr": lr, "training.seed": seed, BUDGET: budget}
        self._written = written_settings({**written_settings(settings or {}), **written_settings(short)})
        config = module_config(self._written)
        parse_budget(config.training.budget)
        check_objective(objective)
        if batches_per_epoch is not None and batches_per_epoch < 1:
            raise UserError(f"batches_per_epoch={batches_per_epoch}: expected 1 or more")
        self._callbacks, self._loggers = check_callbacks(callbacks), one_or_several(log)
        self._processes = new_processes(ranks, bool(self._callbacks), arguments)
        self._quiet, self._fsdp = quiet, fsdp and world_size() > 1
        check_loggers(self._loggers)
        self._module = make_module(module, config.training.seed)
        self._code = module_code(module, self._module, objective, valid)
        self._device = device_of(self._module, device)
        self._module.to(self._device)
        self._config = resolve_config(config, self._device)
        self._path = None if run is None else Path(run)
        self._objective, self._weight = objective, weight
        self._options = BatchOptions(
            self._device, self._config.training.seed, console_log, weight, world_size() > 1
        )
        self._batches = train_batches(train, batches_per_epoch, self._options)
        self._valid = None if valid is None else held_out_batches(valid, self._options)

    @plain_errors
    def run(self) -> ModuleRun:
        """Train to the end, from the newest checkpoint of the run if there is one, and return the run.

        Afterwards the module has the weights that the run keeps, in evaluation mode. Ctrl-C (or "interrupt
        kernel") ends the training and saves; the same script with the same `run` goes on.

        With `ranks`, or started by torchrun, processes train together: each gives the same whole batches, and
        computes its rows of them. The first process prints and writes.

        Raises: UserError: the batches or the loss can't be used, or the run has other settings; or something
            can't be given to other processes.
        Raises: RunFailed: a callback failed, too many steps in a row were not finite, or a rank failed.
        """
        with silence(self._quiet or rank() > 0):
            if self._processes is not None:
                folder = self._train_in(self._processes)
            else:
                ranks = make_ranks(self._fsdp)
                with interruptible() as signals, joined_world(print_error, RUN_AGAIN, ranks) as world:
                    folder = self._open(world, signals)
                    self._train(folder, signals, world)
                    world.exchange(None)  # the main process has written the weights
                self._finish(folder)
        return ModuleRun(folder, self._module, self._objective, self._valid, self._weight)

    def _train_in(self, processes: Processes) -> RunFolder:
        """Train in other processes. The module of this one gets the weights that the run keeps.

        Raises: UserError: something can't be given to them, or they can't train together.
        Raises: RunFailed: a rank failed.
        """
        self._path = self._path or self._new_path()
        with interruptible() as signals:
            processes.train(self._path, signals)
        folder = open_run(self._path)
        if folder.weights.is_file():
            load_kept_weights(folder, self._module)
        return folder

    def _new_path(self) -> Path:
        """Return the path of a run of which the user does not say where it is."""
        return default_run_path(type(self._module).__name__.lower(), "trainer")

    def _open(self, world: World, signals: SignalHandler) -> RunFolder:
        """Open or create the run, together with the other processes.

        Raises: UserError: the run can't be used, or the processes can't train it together.
        """
        check_versions(world)
        check_module(self._module, self._config.training, world.size)
        if self._fsdp:
            check_sharing(self._module, console_log)
        if SLOTS not in self._written:
            self._config = with_slots(self._config, world.size)
        folder = None
        if world.is_main:
            if self._path and self._path.exists():
                folder = reopen_module_run(
                    self._path, self._written, self._config, self._module, self._batches
                )
            else:
                folder = self._create()
            check_world(folder.config.training, world)
            note_run(str(folder.path))
        path = Path(meet(world, folder))
        folder = folder or open_run(path)
        if world.size > 1 and not list_checkpoints(folder.checkpoints):
            check_alike(self._module, self._batches, Agreement(world, signals))
        if not world.is_main:
            load_initial_weights(folder, self._module)
        self._path = folder.path
        return folder

    def _create(self) -> RunFolder:
        """Create the run, after a trial step.

        Raises: UserError: the run can't be created, or the loss can't be used.
        """
        path = self._path or self._new_path()
        check_run_path(path)
        objective = ModuleObjective(self._module, self._objective)
        cost = measure_module_cost(self._module, objective, self._batches, self._config)
        if "schedule.warmup_steps" not in self._written:
            schedule = limit_warmup(self._config.schedule, cost.steps)
            self._config = self._config.model_copy(update={"schedule": schedule})
        folder = create_module_run(path, self._config, self._module, self._code, self._device)
        print_setup(folder, self._module, self._batches, self._valid, cost)
        return folder

    def _train(self, folder: RunFolder, signals: SignalHandler, world: World) -> None:
        """Train the run to its end.

        Raises: TrainingInterrupted: it was stopped; everything is saved.
        """
        training = folder.config.training
        budget = parse_budget(training.budget)
        timed = budget.unit == "seconds" and folder.read_plans().extended_at is None
        screen = TrainingScreen(budget.amount if timed else None, UNIT, describe_means)
        callbacks = CallbackList([])
        if world.is_main:
            named = [*make_loggers(self._loggers, folder.path), *make_callbacks(training)]
            callbacks = CallbackList([screen, *self._callbacks, *named])
        keep_freed_memory()
        module = copy_to_share(self._module) if self._fsdp else self._module
        objective = ModuleObjective(module, self._objective)
        trainer = training_loop.Trainer(
            folder, module, objective, self._batches, self._valid, callbacks, world=world
        )
        freed = without_weights(self._module, module, folder) if self._fsdp else nullcontext()
        try:
            with freed, screen:
                trainer.run(signals)
        except training_loop.FinishedError:
            done = f"finished, with {trainer.state.counters.step:,} steps: nothing to train"
            console_log(f"{folder.path}: {done}; a larger budget= goes on")
        except Interrupted as stop:
            saved = f" at step {trainer.state.counters.step:,}; everything is saved"
            raise TrainingInterrupted(stop.number, f"{saved}; {run_again(str(folder.path))}") from None
        finally:
            self._counters = trainer.state.counters

    def _finish(self, folder: RunFolder) -> None:
        """Load the weights that a run keeps, draw its curves, and print a summary."""
        if not folder.weights.is_file():  # stopped before the first checkpoint
            return
        facts = load_kept_weights(folder, self._module)
        if rank() > 0:
            return
        write_curves(folder, type(self._module).__name__)
        print_summary(folder, facts, self._counters)
