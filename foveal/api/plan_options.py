"""What is asked of a plan, in Python and on the command line."""

import math
from dataclasses import asdict, dataclass, replace

from foveal.core.errors import UserError
from foveal.studies.plan.hardware import ASSUMED, THIS_MACHINE, Utilization, named_hardware
from foveal.studies.plan.layout import Layout

DEFAULT_LAYOUT = Layout()
"""A single process."""


@dataclass(frozen=True)
class PlanOptions:
    """The machines of a plan, their price, and the sizes of a model that no data give."""

    layout: Layout = DEFAULT_LAYOUT
    hardware: str | None = None
    """The name of the devices, or `this-machine`."""
    utilization: float | None = None
    """The part of the peak that matrix products reach."""
    price_per_hour: float | None = None
    """What a device costs for an hour."""
    vocabulary: int | None = None
    classes: int | None = None

    def __post_init__(self) -> None:
        """Check the hardware, its utilization and the price.

        Raises: UserError: there is no such hardware, the utilization is no part of a peak, or the price is no
            amount above 0.
        """
        if self.hardware is not None and self.hardware != THIS_MACHINE:
            named_hardware(self.hardware)
        if self.utilization is not None and not 0 < self.utilization <= 1:
            raise UserError(f"--utilization {self.utilization:g}: expected a part of the peak, such as 0.4")
        if self.price_per_hour is not None and not 0 < self.price_per_hour < math.inf:
            raise UserError(f"--price-per-hour {self.price_per_hour:g}: expected an amount above 0")

    @property
    def sizes(self) -> dict[str, int]:
        """The given sizes of the model."""
        sizes = {"vocabulary": self.vocabulary, "classes": self.classes}
        return {size: number for size, number in sizes.items() if number is not None}

    @property
    def reached(self) -> Utilization:
        """The parts of the peaks that a step reaches."""
        return ASSUMED if self.utilization is None else replace(ASSUMED, products=self.utilization)

    def is_here(self, data: str | None) -> bool:
        """Return whether a step is measured on this machine."""
        return self.hardware == THIS_MACHINE or (self.hardware is None and data is not None)

    def check_here(self) -> None:
        """Check that no option of other machines is given.

        Raises: UserError: an option is given.
        """
        default = asdict(DEFAULT_LAYOUT)
        given = [option for option, degree in asdict(self.layout).items() if degree != default[option]]
        of_devices = {"utilization": self.utilization, "price_per_hour": self.price_per_hour}
        given += [*self.sizes, *(option for option, value in of_devices.items() if value is not None)]
        if given:
            raise UserError(
                f"--{given[0].replace('_', '-')}: this machine is measured in one process, on DATA; "
                "leave it out"
            )
