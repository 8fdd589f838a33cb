"""The view `confusion`: the classes that a run confuses with each other."""
