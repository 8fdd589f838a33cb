"""Objectives: each maps a batch to the terms of the loss. These are shared by several tasks."""
