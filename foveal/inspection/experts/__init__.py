"""The view `experts`: which tokens a mixture of experts sends to which expert."""
