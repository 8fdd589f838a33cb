"""Modules whose weights torch's FSDP2 gathers in more than one type of numbers. torch documents the groups of
a module's weights, but in private modules."""

from collections.abc import Mapping

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo, ShardPlacementResult

from foveal.distributed.mesh import own_group
from foveal.distributed.world import Ranks


class WeightGroups:
    """How ranks gather weights: those of `lower` in 16 bits, `whole` ones not at all, and others as they are.

    The parts of the ranks, the gradients that are added up and their sums stay as they are. FSDP2 gathers the
    weights of a module in one type for each process group, hence a second group of the same ranks.
    """

    def __init__(
        self,
        ranks: Ranks,
        device: torch.device,
        lower: Mapping[nn.Parameter, torch.dtype],
        whole: set[nn.Parameter],
    ):
        assert ranks.group is not None
        self._lower, self._whole = lower, whole
        self._mesh = DeviceMesh.from_group(ranks.group, device.type)
        self._lower_mesh: FSDPMeshInfo | None = None
        if lower:
            again = own_group(torch.tensor(dist.get_process_group_ranks(ranks.group)), ranks.rank).group
            assert again is not None
            self._lower_mesh = FSDPMeshInfo(DeviceMesh.from_group(again, device.type), shard_mesh_dim=0)

    def share(self, module: nn.Module) -> None:
        """Share the weights of a module that are not shared yet."""
        fully_shard(module, mesh=self._mesh, shard_placement_fn=self._group_of, ignored_params=self._whole)
        assert isinstance(module, FSDPModule)
        for group in module._get_fsdp_state()._fsdp_param_groups:
            if group.mesh_info is self._lower_mesh:
                group.mp_policy = MixedPrecisionPolicy(next(iter(self._lower.values())), torch.float32)

    def _group_of(self, weight: nn.Parameter) -> ShardPlacementResult | None:
        if self._lower_mesh is None or weight not in self._lower:
            return None
        return ShardPlacementResult(None, self._lower_mesh)
