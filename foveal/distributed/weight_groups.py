"""Modules of which torch's FSDP2 gathers some weights in bfloat16, and others as they are. torch documents
groups of the weights of a module, but in private modules."""

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

try:
    from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo, ShardPlacementResult
except ImportError:
    FSDPMeshInfo = ShardPlacementResult = None  # type: ignore[assignment,misc]

from foveal.distributed.mesh import own_group
from foveal.distributed.world import Ranks

MIXED_PRECISION = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


class WeightGroups:
    """How `ranks` gather the weights of modules: those `in_bfloat16`, and others as they are; those of
    `on_each` are not shared.

    The parts that the ranks hold, and the sums of the gradients, are float32. FSDP2 gathers the weights of a
    module in one type for each process group, hence a second group of the same ranks. A torch without such
    groups gathers all weights as they are.
    """

    def __init__(
        self,
        ranks: Ranks,
        device: torch.device,
        in_bfloat16: set[nn.Parameter],
        on_each: set[nn.Parameter],
    ):
        assert ranks.group is not None
        self._in_bfloat16, self._on_each = in_bfloat16, on_each
        self._mesh = DeviceMesh.from_group(ranks.group, device.type)
        self._second_mesh: FSDPMeshInfo | None = None
        if in_bfloat16 and FSDPMeshInfo is not None:
            same_ranks = torch.tensor(dist.get_process_group_ranks(ranks.group))
            second = own_group(same_ranks, ranks.rank).group
            assert second is not None
            self._second_mesh = FSDPMeshInfo(DeviceMesh.from_group(second, device.type), shard_mesh_dim=0)

    def share(self, module: nn.Module) -> None:
        """Share the weights of a module that are not shared yet."""
        fully_shard(module, mesh=self._mesh, shard_placement_fn=self._group_of, ignored_params=self._on_each)
        assert isinstance(module, FSDPModule)
        for group in module._get_fsdp_state()._fsdp_param_groups:
            if group.mesh_info is self._second_mesh:
                group.mp_policy = MIXED_PRECISION

    def _group_of(self, weight: nn.Parameter) -> ShardPlacementResult | None:
        if self._second_mesh is None or weight not in self._in_bfloat16:
            return None
        return ShardPlacementResult(None, self._second_mesh)
