"""The diagnosis of a training from its log: rules, each with its evidence."""
