"""The options that say how processes train together, and the world that they make."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.core.rank import world_size
from foveal.core.terminal_text import counted
from foveal.distributed.world import MakeRanks, Ranks

FLAGS = {"--fsdp"}
OPTIONS = {"--dp", "--tp", "--pp", "--virtual-stages", "--ep"}
"""Options that say which parts of the weights a process holds, for a run that goes on."""


@Parameter(name="*")
@dataclass(frozen=True)
class ParallelOptions:
    """How many processes train together, and what each computes: dp * tp * pp processes."""

    ranks: int | None = None
    """The number of processes on this machine that train together, each on its slots of every batch."""
    dp: int | None = None
    """The number of groups of processes that compute different rows (data parallelism); the processes
    divided by --tp and --pp if not given."""
    fsdp: Annotated[bool, Parameter(negative="")] = False
    """Share the weights among these groups, with their gradients and optimizer states (fully sharded data
    parallel), for a model that does not fit into the memory of one process."""
    tp: int = 1
    """The number of processes that split each layer among them (tensor parallelism); it must divide the
    attention heads."""
    pp: int = 1
    """The number of processes that follow each other as stages of the model (pipeline parallelism)."""
    virtual_stages: int = 1
    """The number of stages of each process of a pipeline; with more, processes wait less (interleaved
    1F1B)."""
    ep: int = 1
    """The number of groups that share the experts of each layer among them (expert parallelism)."""
    max_restarts: int = 0
    """How often all go on from the last checkpoint after a rank of `--ranks` was killed or froze."""

    @property
    def processes(self) -> int:
        return world_size() if self.ranks is None else self.ranks

    @property
    def default_slots(self) -> int:
        """The slots of a new run: each rank of a pipeline has as many as processes."""
        return self.processes // self.tp

    def make_ranks(self) -> MakeRanks:
        """Return what makes the world of a process.

        Raises: UserError: the options do not fit the number of processes, or each other.
        """
        self._check_degrees()
        self._check_pairs()
        # Imported where needed: torch's modules for these take up to a second.
        if self.fsdp:
            from foveal.distributed.sharded import ShardedRanks

            return partial(ShardedRanks, tp=self.tp)
        if self.ep > 1:
            from foveal.distributed.experts import ExpertRanks

            return partial(ExpertRanks, ep=self.ep, tp=self.tp)
        if self.pp > 1:
            from foveal.distributed.pipeline.ranks import PipelineRanks

            return partial(PipelineRanks, pp=self.pp, virtual_stages=self.virtual_stages, tp=self.tp)
        if self.tp > 1:
            from foveal.distributed.mesh import MeshRanks

            return partial(MeshRanks, tp=self.tp)
        return Ranks

    def _check_degrees(self) -> None:
        """Check that the degrees multiply to the number of processes."""
        processes = self.processes
        groups = processes // max(1, self.tp * self.pp)
        for name, degree, whole in (
            ("tp", self.tp, processes),
            ("pp", self.pp, processes // max(1, self.tp)),
            ("ep", self.ep, groups),
        ):
            if degree > 1 and processes == 1:
                raise UserError(f"--{name} {degree}: there is a single process: add --ranks N")
            if degree < 1 or whole % degree:
                fitting = ", ".join(str(size) for size in range(1, whole + 1) if whole % size == 0)
                left = "are" if whole == processes else f"make {counted(whole, 'group')}, which are"
                raise UserError(
                    f"--{name} {degree}: the {processes} processes {left} divided by {fitting}; choose one "
                    "of these"
                )
        if self.virtual_stages < 1 or (self.virtual_stages > 1 and self.pp == 1):
            raise UserError(
                f"--virtual-stages {self.virtual_stages}: stages of a pipeline; expected a number from 1 on, "
                "with --pp"
            )
        if self.dp not in (None, groups):
            raise UserError(
                f"--dp {self.dp}: {processes} processes are {groups} groups of --tp {self.tp} times --pp "
                f"{self.pp}; leave out --dp, or start {(self.dp or 0) * self.tp * self.pp}"
            )

    def _check_pairs(self) -> None:
        """Check that what the user asks for goes together."""
        if self.fsdp and self.processes // (self.tp * self.pp) == 1:
            raise UserError(
                "--fsdp: there is a single group of processes, and no other to share the weights with: raise "
                "--ranks"
            )
        given = [f"--{name}" for name in ("fsdp", "pp", "ep") if int(getattr(self, name)) > (name != "fsdp")]
        if len(given) > 1:
            raise UserError(
                f"{' and '.join(given)} do not go together: choose one of them; --tp goes with each"
            )


NO_PARALLEL_OPTIONS = ParallelOptions()
