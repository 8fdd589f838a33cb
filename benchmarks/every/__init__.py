"""The parts that benchmarks.every_part tries, the data they are tried on, and one trial."""
