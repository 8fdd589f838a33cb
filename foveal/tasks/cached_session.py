"""A run whose own data are read once, for several views."""

from dataclasses import dataclass, field
from typing import Any

from foveal.core.log import Log
from foveal.data.core.prepared_data import PreparedData
from foveal.tasks.session import EvaluationData, Session
from foveal.ui.console import log as console_log


@dataclass(frozen=True)
class CachedSession(Session):
    """A run whose own data are read once, for several views."""

    _data: dict[str, Any] = field(default_factory=dict)

    def held_out(self, data: str | None, option_hint: str, log: Log = console_log) -> EvaluationData:
        """Return all of `data`, or the run's own held-out split, which is read once.

        Raises: UserError: as for any run.
        """
        if data is not None:
            return super().held_out(data, option_hint, log)
        if "held_out" not in self._data:
            self._data["held_out"] = super().held_out(None, option_hint, log)
        split: EvaluationData = self._data["held_out"]
        return split

    def training_data(self, log: Log = console_log) -> PreparedData[Any, Any]:
        """Return the run's own data as in training, which are read once.

        Raises: UserError: as for any run.
        """
        if "training" not in self._data:
            self._data["training"] = super().training_data(log)
        prepared: PreparedData[Any, Any] = self._data["training"]
        return prepared


def cached(session: Session) -> CachedSession:
    """Return the same run with its data read once."""
    return CachedSession(session.run, session.task, session.objective)
