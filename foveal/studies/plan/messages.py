"""The messages of a process in a step: those that its step sent, and those of what it did not run."""

from collections import Counter

from foveal.studies.plan.layout import Layout
from foveal.studies.plan.memory import NUMBER_BYTES
from foveal.studies.plan.rank_step import RankStep
from foveal.studies.plan.recorder import Message


def all_messages(step: RankStep, layout: Layout, recomputes: bool) -> Counter[Message]:
    """Return how often each message is sent in a step."""
    messages = step.messages.copy()
    if layout.ep > 1:
        messages = _with_sums_of_experts(messages, step)
    if layout.fsdp:
        messages += _of_shared_weights(step)
    if layout.pp > 1:
        messages += _of_pipeline(step, layout)
    if layout.ep > 1:
        messages += _of_experts(step, recomputes)
    return messages


def _of_shared_weights(step: RankStep) -> Counter[Message]:
    """Return the messages of weights in parts: each block is gathered forward and backward, and its gradients
    are summed into parts, for each micro-batch; what is outside of the blocks is gathered once (Zhao et al.
    2023, section 3.2)."""
    messages: Counter[Message] = Counter()
    parameters, count = step.parameters, step.micro_batches
    blocks, gathered = parameters.blocks, parameters.gathered_blocks
    messages[Message("forward", "all-gather", "dp", parameters.gathered - sum(gathered))] += count
    for size in gathered:
        messages[Message("forward", "all-gather", "dp", size)] += count
        messages[Message("backward", "all-gather", "dp", size)] += count
    for numbers in (parameters.own - sum(blocks), *blocks):
        messages[Message("backward", "reduce-scatter", "dp", NUMBER_BYTES * numbers)] += count
    return messages


def _of_pipeline(step: RankStep, layout: Layout) -> Counter[Message]:
    """Return the messages of a stage: the vectors between blocks to the next stage, and their gradients to
    the stage before, for each micro-batch and part of the pipeline (Narayanan et al. 2021, section 2.2)."""
    count = step.micro_batches * layout.virtual_stages
    return Counter(
        {
            Message("forward", "send", "pp", step.passed_on): count,
            Message("backward", "send", "pp", step.passed_on): count,
        }
    )


def _with_sums_of_experts(messages: Counter[Message], step: RankStep) -> Counter[Message]:
    """Return the messages in which the gradients of experts are summed among the copies of these experts."""
    result: Counter[Message] = Counter()
    experts = NUMBER_BYTES * step.parameters.experts
    for message, count in messages.items():
        if message.group == "dp" and message.size > experts:
            result[message._replace(size=message.size - experts)] += count
            result[message._replace(size=experts, group="dp of experts")] += count
        else:
            result[message] += count
    return result


def _of_experts(step: RankStep, recomputes: bool) -> Counter[Message]:
    """Return the messages of shared experts: the vectors to the experts and back, and their gradients
    likewise (Lepikhin et al. 2021, section 3). Blocks that are computed again send again."""
    return Counter(
        {
            Message("forward", "all-to-all", "ep", step.routed): 2 * step.micro_batches,
            Message("backward", "all-to-all", "ep", step.routed): (4 if recomputes else 2)
            * step.micro_batches,
        }
    )
