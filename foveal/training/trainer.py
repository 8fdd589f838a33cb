"""The training loop, which knows neither task nor model, and never prints.

A run that was killed and resumed ends bit for bit like one that was not. Every random choice is a function of
(seed, step), the learning rate of (step, plan), and the batch of (seed, epoch, index). The times at which
checkpoints are written change nothing.
"""

import math
import time
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import pairwise

from torch import nn

from foveal.core.callbacks import Callback, TrainingInfo
from foveal.core.errors import TrainingDiverged, UserError
from foveal.core.signals import Interrupted, SignalHandler
from foveal.distributed.world import ONE_PROCESS, World
from foveal.store.plan import Plan, Plans
from foveal.store.run import RunFolder, run_lock
from foveal.training import snapshot
from foveal.training.agreement import Agreement, FailedElsewhere
from foveal.training.callbacks import CallbackFailed, CallbackList
from foveal.training.dry_run import compute_row
from foveal.training.evaluate import evaluate
from foveal.training.followers import FollowerFiles
from foveal.training.layer_statistics import LayerProbe, LayerStatistics
from foveal.training.new_state import new_state
from foveal.training.plan import EvaluationSchedule, StepTimer, lr_at, parse_budget, plan_of_budget
from foveal.training.preview import preview
from foveal.training.protocols import Batches, BatchesExhausted, Objective
from foveal.training.run_files import RunFiles
from foveal.training.saving import Saving
from foveal.training.slots import Slots
from foveal.training.step import train_step
from foveal.training.time_left import FinalTest, TimeLeft


class FinishedError(UserError):
    """The run was already trained to its end. Its state has been restored, and can be reported."""


class Trainer:
    """Trains `model` with `objective` on `batches` until the run's budget is spent.

    `valid` selects the best weights and stops early. Without `valid`, or if the config says so, the last
    weights are kept. `test` is the caller's test afterwards, which counts in the time left. Such a caller
    encloses both in the block `running` of the callbacks. `probe` measures the layers now and then.

    The ranks of a `world` train the same weights, each on its slots of every batch. The main rank writes the
    files, has the callbacks, and decides what depends on a clock.
    """

    def __init__(
        self,
        folder: RunFolder,
        model: nn.Module,
        objective: Objective,
        batches: Batches,
        valid: Batches | None,
        callbacks: CallbackList | None = None,
        test: FinalTest | None = None,
        probe: LayerProbe | None = None,
        world: World = ONE_PROCESS,
    ):
        self.folder, self.config = folder, folder.config.training
        compute = partial(compute_row, model, objective, batches, self.config.precision)
        self.placement = world.place(model, compute)
        self.model, self.objective = model, self.placement.computing(objective)
        self.batches, self.valid = batches, valid
        self.callbacks = CallbackList() if callbacks is None else callbacks
        self.budget = parse_budget(self.config.budget)
        eval_batches = 0 if valid is None else valid.per_epoch
        accumulation, every = self.config.grad_accumulation, self.config.evaluate_every
        self.evaluations = EvaluationSchedule(every, eval_batches, accumulation)
        self.step_timer = StepTimer(self.budget.amount, folder.config.schedule)
        self.time_left = TimeLeft(self.step_timer, self.evaluations, test or FinalTest())
        self.slots = Slots(self.config.slots, world)
        self.state = new_state(folder, model, batches, world, self.placement)
        log = self.state.statistics
        self.statistics = LayerStatistics(model, probe, log) if probe and log else None
        files = RunFiles if world.is_main else FollowerFiles
        self.files = files(folder, model, self.state, self.placement, world)
        others = self.callbacks, self.time_left, self.config.checkpoint_seconds
        self._saving = Saving(self.files, self.state, self.slots, *others)
        self._stops = self._overdue = False

    def run(self, signals: SignalHandler) -> snapshot.TrainingCounters:
        """Train to the end, from the newest checkpoint or from the beginning.

        Raises: Interrupted: a signal came; a checkpoint was saved, unless a second signal came.
        Raises: CallbackFailed: a callback raised an exception; a checkpoint was saved.
        Raises: RunFailed: too many consecutive steps were skipped, or writing failed.
        Raises: UserError: the run is already finished, or its checkpoints can't be used.
        """
        world = self.slots.world
        lock = run_lock(self.folder) if world.is_main else nullcontext()
        self._together = Agreement(world, signals)
        with ExitStack() as logs, lock, signals.deferred(), self.files.finished_at_end(signals):
            self.state.close_logs(logs)
            damaged = self._resume()
            with self.callbacks.running():
                counters, plan = self.state.counters, self.state.plan
                self.callbacks.end = counters.to_record()
                info = TrainingInfo(self.folder.path, counters.step, self.model, plan, tuple(damaged))
                self.callbacks.emit(Callback.on_start, info)
                try:
                    self._loop()
                except FailedElsewhere:
                    self.save()
                except Interrupted:
                    if not signals.urgent:
                        self.save()
                    raise
                except BatchesExhausted:
                    self.save()
                    raise
                except CallbackFailed as failure:
                    self._together.leave()
                    self._saving.save_silently()
                    step = f"step {counters.step:,} is saved"
                    raise CallbackFailed(f"{failure}; {step}") from failure.__cause__
                finally:
                    self.callbacks.end = counters.to_record()
        return self.state.counters

    def _loop(self) -> None:
        counters = self.state.counters
        while not counters.finish_reason:
            self._agree()
            if self._overdue and counters.step > self._saving.last_step:
                self._saving.begin()
            plan = self.state.plans.at(counters.step - 1)
            if counters.step == 0 or self.evaluations.due(counters.step, plan):
                self._evaluate_and_preview()
                self._agree()
            if counters.step == self.state.plans.extended_at:
                counters.evals_without_improvement = 0  # those of the budget before do not end this one
            self.time_left.try_outputs(counters.step, counters.seconds, self.state.plan)
            if self.state.plan and counters.step >= self.state.plan.total_steps:
                if counters.step and counters.step == counters.skipped_steps:
                    raise TrainingDiverged(
                        f"each of the {counters.step:,} steps gave numbers that are not finite: nothing is "
                        "learned; try a lower optimizer.lr"
                    )
                counters.finish_reason = "budget"
            elif 0 < self.config.patience <= counters.evals_without_improvement:
                counters.finish_reason = "patience"
            elif self._stops:
                counters.finish_reason = "callback"
            else:
                self._train()
        self.save()

    def _train(self) -> None:
        start = time.perf_counter()
        state, counters, config = self.state, self.state.counters, self.config
        step = counters.step
        indices = range(step * config.grad_accumulation, (step + 1) * config.grad_accumulation)
        batches = [self.batches.batch(*divmod(index, self.batches.per_epoch)) for index in indices]
        if self.statistics:
            start += self.statistics.before_step(step, state.plan)
        lr = lr_at(step, state.plans.at(step), self.folder.config.schedule, self.folder.config.optimizer.lr)
        result, state.carries = train_step(
            self.model,
            self.objective,
            state.optimizer,
            batches,
            state.carries,
            lr=lr,
            seed=(config.seed, step),
            precision=config.precision,
            scaling=state.scaling,
            slots=self.slots,
            activation_checkpointing=config.activation_checkpointing,
        )
        if state.average and result.first_nonfinite is None:
            state.average.update(step)
        tokens = sum(batch.tokens for batch in batches)
        seconds = time.perf_counter() - start
        if self.statistics:
            self.statistics.after_step(step + 1, state.plan)

        counters.step += 1
        counters.tokens += tokens
        counters.seconds += seconds
        if state.plan is None:
            self.step_timer.step_times.append(seconds)
        counters.skipped_steps = counters.skipped_steps + 1 if result.first_nonfinite else 0
        record = {
            "kind": "refused" if result.first_nonfinite else "step",
            "step": counters.step,
            "epoch": counters.step * config.grad_accumulation / self.batches.per_epoch,
            "tokens": counters.tokens,
            **result.to_record(lr, state.rounding),
            "seconds": counters.seconds,
            "tokens_per_second": tokens / seconds,
        }
        if result.first_nonfinite is None:
            state.metrics.write(record)
            self.time_left.pace.add(seconds)
            left = self.time_left.to_record(counters.step, counters.seconds, state.plan)
            self.callbacks.emit(Callback.on_step, record | left)
            return
        record |= {"culprit": result.first_nonfinite, "in_a_row": counters.skipped_steps}
        state.metrics.write(record)
        self.callbacks.emit(Callback.on_skipped_step, record)
        if counters.skipped_steps >= config.max_nonfinite_steps:
            raise TrainingDiverged(
                f"{counters.skipped_steps} consecutive steps gave numbers that are not finite, the last in "
                f"step {counters.step} in {result.first_nonfinite}; try a lower optimizer.lr"
            )

    def _evaluate_and_preview(self) -> None:
        """Evaluate (except at step 0), keep the weights if they are the best, and preview. Each happens once
        per step."""
        state, counters, is_main = self.state, self.state.counters, self.slots.world.is_main
        times = [time.perf_counter()]

        def report_progress(index: int, total: int) -> None:
            self._together.poll()
            if index:
                times.append(time.perf_counter())
            self.callbacks.emit(Callback.on_evaluating, index, total)

        if state.average and counters.step:
            state.average.on_evaluation(counters.step)
        with state.average.applied() if state.average else nullcontext():
            if self.valid and counters.last_eval_step < counters.step:
                parts = self.model, self.objective, self.valid
                means = evaluate(
                    *parts,
                    precision=self.config.precision,
                    progress=report_progress,
                    together=self._together,
                    slots=self.slots.count,
                )
                times.append(time.perf_counter())
                counters.last_eval_step = counters.step
                lowest = math.inf if counters.best_loss is None else counters.best_loss
                best = self.config.keep == "best" and means["loss"] < lowest
                counters.evals_without_improvement = 0 if best else counters.evals_without_improvement + 1
                if best:
                    counters.best_step, counters.best_loss = counters.step, means["loss"]
                    self.files.keep_best(means["loss"])
                record = {"kind": "evaluation", "step": counters.step, **means}
                state.metrics.write(record)
                self.callbacks.emit(Callback.on_evaluation, record | {"best_step": counters.best_step})
            if counters.last_preview_step < counters.step:
                seed, step = self.config.seed, counters.step
                computes = is_main or not self.placement.is_whole
                text = preview(self.model, self.objective, seed, step) if computes else None
                counters.last_preview_step = counters.step
                if text is not None:
                    state.samples.write({"step": counters.step, "text": text})
                    self.callbacks.emit(Callback.on_sample, counters.step, text)
        batch_seconds = [later - earlier for earlier, later in pairwise(times)]
        self.time_left.evaluated(batch_seconds, time.perf_counter() - times[0])

    def save(self) -> None:
        """Write a checkpoint of the current state, between two steps. All ranks call this together."""
        self._saving.save()

    def _resume(self) -> list[str]:
        """Restore the newest checkpoint. Return a line about each damaged checkpoint.

        Raises: FinishedError: the run is already finished.
        """
        restored, damaged = self.files.restore()
        of_rows = map(self.slots.own_carry, self.state.carries)
        self.state.carries = [*map(self.placement.own_states, of_rows)]
        self._saving.last_step = self.state.counters.step
        if self.state.counters.finish_reason:
            path, step = self.folder.path, self.state.counters.step
            raise FinishedError(
                f"{path}: {restored}finished after {step} steps; to go on: foveal resume {path} --budget +10m"
            )
        return damaged

    def _agree(self) -> None:
        """Take over from the main rank what depends on its clock and its callbacks.

        Raises: Interrupted: a signal has arrived at one of the ranks.
        """
        self._saving.report()
        plan = self._plan_now() if self.state.plan is None else None
        own = plan, self._saving.is_due, self.callbacks.stops
        decisions, listings = zip(*self._together.exchange((own, self.files.listing)), strict=True)
        plan, self._overdue, self._stops = decisions[0]
        self.files.publish(listings)
        if plan is not None:
            self.state.plans = Plans((plan,))
            self.files.write_plans(self.state.plans)
            self.callbacks.emit(Callback.on_plan, plan)

    def _plan_now(self) -> Plan | None:
        if self.budget.unit == "seconds":
            return self.step_timer.plan(self.state.counters.step, self.state.counters.seconds)
        return plan_of_budget(self.budget, self.batches, self.folder.config)
