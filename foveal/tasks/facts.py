"""The facts that a task states about itself as class attributes, so that other code names no task."""

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar

from foveal.config import DataConfig
from foveal.config.values import Names, PartSection, StrictModel
from foveal.models.encoder_registry import SourceSizes
from foveal.store.manifest import LogUnits

TOKEN = "token"
"""The loss unit of tasks that predict tokens; their loss has a perplexity."""


class TaskSettings(StrictModel):
    """The section `task` of a config; a task's own settings are fields of a subclass."""

    name: Annotated[str, Names("task", sections=False)]
    """Name of the task."""


class ScoredSettings(TaskSettings, PartSection):
    """The settings of tasks whose outputs are compared with references."""

    metrics: Annotated[str, Names("metric")] = ""
    """Metrics beside those of the task, by name."""


class TaskFacts:
    """The facts of a task. A subclass with a `name` is a task."""

    name: ClassVar[str]
    purpose: ClassVar[str]
    """What the task does, in a single line."""
    preset: ClassVar[str]
    """The preset that is trained if the user does not name a preset."""
    text_preset: ClassVar[str] = ""
    """The preset with an encoder of kind text, if it is not `preset`."""
    Settings: ClassVar[type[TaskSettings]] = TaskSettings
    DataSettings: ClassVar[type[DataConfig]] = DataConfig
    """The class of the section `data`. Settings that only the task has, such as columns, are fields of a
    subclass."""
    refused_settings: ClassVar[Mapping[str, str]] = {}
    """Settings of other tasks that users may try here, with the reason why this task does not have them."""
    always_read: ClassVar[tuple[str, ...]] = ()
    """The settings that the task itself always reads."""
    encoders: ClassVar[tuple[str, ...]]
    """The kinds of encoder that read the task's source; `none` if the model has no encoder."""
    encoder_source: ClassVar[str] = ""
    """The source of encoders of plugins that the task takes (text, series ...); empty if it takes none."""
    batch_setting: ClassVar[str] = "data.batch_tokens"
    """The setting of the size of a batch."""
    sequence: ClassVar[str] = ""
    """What has the positions of targets: a `context`, a `target`, a `row`; empty without positions."""
    positions_alike: ClassVar[bool] = False
    """Rows are cut from a text anywhere, so that positions differ only by what stands before them."""
    columns: ClassVar[tuple[str, ...]] = ()
    """The settings `data.*` that name the columns of the task."""
    datasets: ClassVar[tuple[str, ...]] = ()
    """The data sets of the catalog that are made for the task."""

    source_kind: ClassVar[str]
    """The source: text, series, audio, image or clip, or a task's own."""
    target_kind: ClassVar[str]
    """The target: label, labels (one for each place), text, choice or nothing, or a task's own."""
    is_default: ClassVar[bool] = False
    """Whether the task is trained if neither the user nor the preset names one."""
    trains_networks: ClassVar[bool] = False
    """Whether the task trains published image networks by name."""
    imports: ClassVar[str] = ""
    """The kind of imported models that become runs of the task: decoder, encoder or image-network."""
    exports: ClassVar[bool] = False
    """Whether a run can be exported as a model folder of Hugging Face."""
    model_reused_as: ClassVar[str] = ""
    """The kind of encoder that a run's whole model can be in another task; empty if there is none."""
    fits_labels: ClassVar[bool] = False
    """Whether labels are fitted to new data even if training starts from a run of the task."""
    has_classes: ClassVar[bool] = False
    """Whether all rows share the same classes."""
    has_decoder: ClassVar[bool] = True
    """Whether the model has its own stack after the encoder."""
    balances_experts: ClassVar[bool] = True
    """Whether the objective includes the load balancing terms of a mixture of experts."""
    averages_views: ClassVar[bool] = False
    """Whether predictions can be averaged over several views of an image."""

    loss_unit: ClassVar[str] = TOKEN
    """The unit over which the loss is averaged."""
    speed_unit: ClassVar[str] = "tokens"
    """The unit of a step's inputs."""
    length_unit: ClassVar[str] = "words"
    """The unit of a source's length."""
    next_command: ClassVar[tuple[str, ...]] = ("predict", "DATA")
    """The command to try after training, and its arguments after the run's name."""
    suggested_view: ClassVar[str] = ""
    """The view of a run that best shows what the model has learned."""
    generate_options: ClassVar[Collection[str]] = ()
    """The options of `foveal generate` that the task uses. Empty if the task does not generate."""
    takes_shots: ClassVar[bool] = False
    """Whether a run continues a prompt of examples (`--shots`)."""

    @property
    def num_outcomes(self) -> int | None:
        """The number of outcomes between which an untrained model guesses; None if there is no such number.

        The task is bound to a processor.
        """
        return None

    @property
    def source_sizes(self) -> SourceSizes | None:
        """The sizes of the sources that the model's encoder reads: those of the processor, or default sizes.
        None if the model has no encoder, or one of several sources."""
        return None

    @property
    def log_units(self) -> LogUnits:
        """Return what the numbers in the log of a run mean. The task is bound to a processor."""
        return LogUnits(speed_unit=self.speed_unit, loss_unit=self.loss_unit, num_outcomes=self.num_outcomes)
