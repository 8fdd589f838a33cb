"""The fast path of torch after a capture, and the operations of attention on a CPU."""

import pytest
import torch

from foveal.inspection.operation_mode import flop_formulas, without_fast_path


@pytest.mark.parametrize("before", [True, False])
def test_the_fast_path_is_what_it_was(before: bool) -> None:
    usual = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(before)
    try:
        with without_fast_path():
            assert not torch.backends.mha.get_fastpath_enabled()
        assert torch.backends.mha.get_fastpath_enabled() == before
    finally:
        torch.backends.mha.set_fastpath_enabled(usual)


def test_the_kernel_of_cpus_has_the_formula_of_attention() -> None:
    aten, formulas = torch.ops.aten, flop_formulas()
    usual = formulas[aten._scaled_dot_product_flash_attention]
    assert formulas[aten._scaled_dot_product_flash_attention_for_cpu] is usual
