"""The view `samples` of a run: what the model wrote during its training, from noise to language."""

from dataclasses import dataclass

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.parse_json import parse_json
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.inspection.panels import Table
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View
from foveal.store.regular_files import read_regular

CAVEAT = "single samples at the time of each evaluation; a good one may be luck, and none is a score"


@dataclass(frozen=True)
class SamplesOptions:
    last: WholeNumber = 50
    """How many samples, the newest first."""


@register_view("samples")
class SamplesView(View[SamplesOptions]):
    summary = "What the model wrote at each evaluation of its training, the newest first."
    Options = SamplesOptions
    depends_on_weights = needs_model = False

    def fits(self, run: InspectedRun) -> str:
        path = run.run.samples
        return "" if path.is_file() and path.stat().st_size else "this run wrote no samples in its training"

    def compute(
        self, run: InspectedRun, options: SamplesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Read the log of samples."""
        if options.last < 1:
            raise UserError(f"--last {options.last}: expected 1 or more")
        lines = read_regular(run.run.samples).splitlines()
        samples = [line for line in lines if line.endswith(b"}")]  # the last may be half written
        try:
            records = [parse_json(line) for line in samples[::-1][: options.last]]
            rows = tuple((f"{int(one['step']):,}", str(one["text"])) for one in records)
        except (ValueError, TypeError, LookupError):
            raise UserError(
                f"{run.run.samples}: damaged, so the run has no samples; restore the file"
            ) from None
        title = f"{run.run.path}: {len(samples):,} samples"
        table = Table("", ("step", "sample"), rows)
        return Payload("samples", str(run.run.path), title, (table,), CAVEAT, "exact")
