"""The bidirectional language model of ELMo: everything that only this task has."""
