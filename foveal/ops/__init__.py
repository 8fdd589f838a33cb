"""Operations of the layers as plain functions: a reference for each, and fast paths beside it."""
