"""The machines that a plan knows: peak speeds and memory as published, and how much of a peak is reached."""

from dataclasses import dataclass

from foveal.config import suggest
from foveal.core.errors import UserError

GB, TERA = 1e9, 1e12


@dataclass(frozen=True)
class Hardware:
    """A device, and the node it stands in. Speeds are peaks, a second and in one direction."""

    name: str
    half_flops: float
    """Floating-point operations on 16-bit numbers."""
    single_flops: float
    """Floating-point operations on float32."""
    memory: float
    """Bytes of memory."""
    memory_speed: float
    """Bytes that are read from or written to memory."""
    per_node: int
    """Devices in a node."""
    link_speed: float
    """Bytes that a device sends to the others of its node."""
    network_speed: float
    """Bytes that a node sends to other nodes."""
    source: str
    """Where the figures are published."""
    copies_gathers: bool = False
    """Whether a gather or a reduce-scatter takes a second buffer, as gloo's do; NCCL's do not."""


@dataclass(frozen=True)
class Utilization:
    """The parts of the peaks that a step reaches, one set for all devices, where no other is given."""

    products: float = 0.66
    """Of matrix products: 83 of 125 TFLOP/s on a V100 (Markidis et al. 2018)."""
    memory: float = 0.83
    """Of memory: 750 of 900 GB/s on a V100 (Jia et al. 2018)."""
    links: float = 0.80
    """Of links and network: an assumption."""


ASSUMED = Utilization()


HARDWARE = {
    each.name: each
    for each in (
        Hardware(
            "p100",
            21.2 * TERA,
            10.6 * TERA,
            16 * GB,
            732 * GB,
            8,
            80 * GB,
            50 * GB,
            "NVIDIA Tesla P100 SXM2 data sheet; DGX-1: 160 GB/s NVLink in both directions, 4 x 100 Gb/s",
        ),
        Hardware(
            "v100-dgx2h",
            130 * TERA,
            16.4 * TERA,
            32 * GB,
            900 * GB,
            16,
            150 * GB,
            100 * GB,
            "Shoeybi et al. 2019, section 5 (39 TFLOP/s are 30 % of the peak; NVSwitch of 300 GB/s in both "
            "directions; 100 GB/s between servers); NVIDIA V100 data sheet",
        ),
        Hardware(
            "a100",
            312 * TERA,
            19.5 * TERA,
            80 * GB,
            2039 * GB,
            8,
            300 * GB,
            200 * GB,
            "NVIDIA A100 80GB SXM data sheet; DGX A100: 600 GB/s NVLink in both directions, 8 x 200 Gb/s",
        ),
        Hardware(
            "h100",
            989 * TERA,
            67 * TERA,
            80 * GB,
            3350 * GB,
            8,
            450 * GB,
            400 * GB,
            "NVIDIA H100 SXM data sheet, dense; DGX H100: 900 GB/s NVLink in both directions, 8 x 400 Gb/s",
        ),
        Hardware(
            "h200",
            989 * TERA,
            67 * TERA,
            141 * GB,
            4800 * GB,
            8,
            450 * GB,
            400 * GB,
            "NVIDIA H200 SXM data sheet, dense; DGX H200: 900 GB/s NVLink in both directions, 8 x 400 Gb/s",
        ),
        Hardware(
            "cpu",
            0.2 * TERA,
            0.1 * TERA,
            16 * GB,
            20 * GB,
            1,
            10 * GB,
            1 * GB,
            "an assumption: a core of 3 GHz with AVX-512, and a network of 10 Gb/s",
            copies_gathers=True,
        ),
    )
}
"""The known hardware by name."""
DEFAULT_HARDWARE = "h100"
THIS_MACHINE = "this-machine"
"""The name of the machine at hand, among those of other hardware."""


def named_hardware(name: str) -> Hardware:
    """Return the hardware of a name.

    Raises: UserError: there is none.
    """
    if name not in HARDWARE:
        raise UserError(f"--hardware {name}: unknown{suggest(name, [*HARDWARE, THIS_MACHINE])}")
    return HARDWARE[name]
