"""How many processes train a model, and what they share: `ranks = pp * dp * tp`, with tp innermost."""

from dataclasses import dataclass

from foveal.core.errors import UserError


@dataclass(frozen=True)
class Layout:
    """The processes of a training.

    Raises: UserError: the numbers do not fit.
    """

    ranks: int = 1
    """All processes."""
    tp: int = 1
    """Processes that split each layer."""
    pp: int = 1
    """Stages of a pipeline."""
    virtual_stages: int = 1
    """Parts of the pipeline in each process, which do not follow each other."""
    ep: int = 1
    """Processes that share the experts; they divide dp."""
    fsdp: bool = False
    """Whether the weights are shared among the dp processes."""
    micro_batches: int = 1
    """Micro-batches that a process computes one after another in a step."""

    @property
    def dp(self) -> int:
        """The number of copies of the model, which compute different rows."""
        return self.ranks // (self.tp * self.pp)

    def __post_init__(self) -> None:
        for option in ("ranks", "tp", "pp", "virtual_stages", "ep", "micro_batches"):
            if getattr(self, option) < 1:
                name = option.replace("_", "-")
                raise UserError(f"--{name} {getattr(self, option)}: expected a whole number from 1 on")
        if self.ranks % (self.tp * self.pp):
            raise UserError(f"--ranks {self.ranks}: not a multiple of --tp {self.tp} x --pp {self.pp}")
        if self.dp % self.ep:
            fitting = ", ".join(str(size) for size in range(1, self.dp + 1) if self.dp % size == 0)
            raise UserError(
                f"--ep {self.ep}: the {self.dp} processes that compute different rows can share experts by "
                f"{fitting}; choose one of these"
            )
        if self.fsdp and max(self.tp, self.pp, self.ep) > 1:
            raise UserError("--fsdp: a plan counts it alone: leave out --tp, --pp and --ep, or --fsdp")
        if self.fsdp and self.ranks == 1:
            raise UserError("--fsdp: a single process has no other to share the weights with: add --ranks N")
        if self.virtual_stages > 1 and self.pp == 1:
            raise UserError(f"--virtual-stages {self.virtual_stages}: there is no pipeline: add --pp N")

    def members(self, group: str) -> range:
        """Return the processes of a group of process 0.

        They split its layers (tp) or share its experts (ep), have copies of its weights (dp) or of its
        experts (dp of experts), or are the stages of its pipeline (pp).
        """
        size, stride = {
            "tp": (self.tp, 1),
            "ep": (self.ep, self.tp),
            "dp": (self.dp, self.tp),
            "dp of experts": (self.dp // self.ep, self.tp * self.ep),
            "pp": (self.pp, self.tp * self.dp),
        }[group]
        return range(0, size * stride, stride)
