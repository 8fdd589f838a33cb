"""`foveal train DATA`: from data on disk to a trained run."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.training.choose import choose
from foveal.api.training.follow import check_versions, check_world, follow
from foveal.api.training.options import NO_OPTIONS, TrainingOptions
from foveal.api.training.prepare import log_lines, prepare
from foveal.api.training.report import ignore_result
from foveal.api.training.resume import ResumeOptions, resume_run
from foveal.commands.parallel import NO_PARALLEL_OPTIONS, ParallelOptions
from foveal.commands.ranks import launch_ranks
from foveal.commands.watch import check_watchable, watched
from foveal.core.errors import UserError
from foveal.core.rank import world_size
from foveal.core.signals import SignalHandler
from foveal.distributed.restarts import run_before_restart
from foveal.distributed.world import joined_world
from foveal.tasks.read_settings import config_to_toml
from foveal.ui.console import log, print_json, print_plain
from foveal.ui.error_line import print_error


def train(
    data: str,
    /,
    *overrides: str,
    options: TrainingOptions = NO_OPTIONS,
    print_config: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    watch: Annotated[bool, Parameter(negative="")] = False,
    parallel: ParallelOptions = NO_PARALLEL_OPTIONS,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a model on DATA: text, pairs, labeled texts, series or images, captions, or a named data set.

    Parameters
    ----------
    data
        An existing path (any text, a folder of texts, a table .jsonl .csv .tsv .parquet, .conllu .conll, a
        folder of recordings with metadata.csv, series .ts .npz, a folder or zip of images by class or with
        metadata.csv), or two aligned files such as `a.en,b.de`, or a name from `foveal data list`.
    overrides
        Settings in place of the preset's: key.sub=value, such as model.width=256 optimizer.lr=1e-3; the
        columns of a table are data.text, data.label, data.source, data.target.
    print_config
        Print the settings of this training with their meanings as TOML, which --model takes; train nothing.
    dry_run
        Say all that is decided and what the training would cost; train nothing, and write nothing.
    watch
        Show curves and samples in the browser while the model trains.
    json
        Print one JSON object with the result on standard output.
    """
    if print_config and (json or dry_run):
        raise UserError(f"--print-config prints TOML: leave out {'--json' if json else '--dry-run'}")
    if watch:
        check_watchable()
    make_ranks = parallel.make_ranks()
    if not (dry_run or print_config) and launch_ranks(parallel):
        return
    has_slots = options.slots or any(each.startswith("training.slots=") for each in overrides)
    if world_size() > 1 and not has_slots:
        options = replace(options, slots=parallel.default_slots)
    with SignalHandler() as signals, joined_world(print_error, ranks=make_ranks) as world:
        check_versions(world)
        begun = run_before_restart(world)
        if not world.is_main:
            if not (dry_run or print_config):
                follow(world, signals)
            return
        on_result = print_json if json else ignore_result
        if begun:
            log(f"torchrun has started the ranks again: {begun} goes on")
            with watched(Path(begun)) if watch else nullcontext():
                resume_run(Path(begun), ResumeOptions(log=options.log), signals, on_result, world)
            return
        chosen = choose(data, overrides, options)
        if print_config:
            log_lines(chosen.lines())
            print_plain(config_to_toml(chosen.choice.config), end="")
            return
        check_world(chosen.choice.config.training, world)
        prepared = prepare(chosen)
        prepared.announce(draws_images=not dry_run)
        if dry_run:
            log("nothing was trained or written: leave out --dry-run to begin")
            on_result(prepared.to_json())
        else:
            if note := world.check(prepared.start.task.new_model):
                log(note)
            run = prepared.create_run()
            with watched(run.path) if watch else nullcontext():
                prepared.train(run, signals, on_result, world=world)
