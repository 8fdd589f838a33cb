"""`--log mlflow`: a run of MLflow, at MLFLOW_TRACKING_URI and in MLFLOW_EXPERIMENT_NAME."""

import os
import time
from collections.abc import Mapping
from typing import Any

from foveal.core.errors import UserError
from foveal.training.loggers.base import Logger, Present

SECONDS_PER_REQUEST, METRICS_PER_REQUEST = 1.0, 1000
"""Metrics are sent at most once a second, unless there are as many as a request may have."""
PARAMS_PER_REQUEST = 100
STATUS = {"stopped": "KILLED", "failed": "FAILED"}
"""MLflow's status of a run by the reason of its end; FINISHED for all others."""


class MlflowLogger(Logger):
    """Sends metrics and settings to MLflow. A resumed run asks MLflow for the last steps that it has."""

    name = package = "mlflow"

    @classmethod
    def check_installed(cls) -> None:
        """Check that MLflow can be imported, and has the store that its settings name.

        Raises: UserError: it has not. The package mlflow-skinny has few.
        """
        super().check_installed()
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        try:
            MlflowClient()
        except MlflowException as error:
            reason = " ".join(str(error).partition("See http")[0].split())
            raise UserError(f"--log mlflow: {reason} pip install 'foveal[mlflow]' has all stores") from None

    def open(self, step: int, state: dict[str, Any]) -> Present:
        from mlflow import MlflowClient

        self._client: Any = MlflowClient()
        self._waiting: list[Any] = []
        self._sent_at = time.monotonic()
        if "run" in state:
            self._id = state["run"]
            self._client.update_run(self._id, status="RUNNING")
            return {kind: self._last_step(f"{kind}/loss") for kind in ("train", "valid")}
        self._id = self._client.create_run(self._experiment(), run_name=self.run.name).info.run_id
        self.save_state({"run": self._id})
        self._send_settings()
        return {}

    def write(self, values: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        self._waiting += [Metric(name, value, now, step) for name, value in values.items()]
        many = len(self._waiting) + len(values) > METRICS_PER_REQUEST
        if many or time.monotonic() - self._sent_at >= SECONDS_PER_REQUEST:
            self._send()

    def flush(self, step: int) -> None:
        self._send()

    def close(self, reason: str) -> None:
        self._send()
        self._client.set_terminated(self._id, STATUS.get(reason, "FINISHED"))

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "foveal")
        experiment = self._client.get_experiment_by_name(name)
        return str(self._client.create_experiment(name) if experiment is None else experiment.experiment_id)

    def _last_step(self, metric: str) -> int:
        return max((entry.step for entry in self._client.get_metric_history(self._id, metric)), default=0)

    def _send(self) -> None:
        for start in range(0, len(self._waiting), METRICS_PER_REQUEST):
            self._client.log_batch(self._id, metrics=self._waiting[start : start + METRICS_PER_REQUEST])
        self._waiting, self._sent_at = [], time.monotonic()

    def _send_settings(self) -> None:
        from mlflow.entities import Param

        params = [Param(key, str(value)) for key, value in self.settings().items()]
        for start in range(0, len(params), PARAMS_PER_REQUEST):
            self._client.log_batch(self._id, params=params[start : start + PARAMS_PER_REQUEST])
