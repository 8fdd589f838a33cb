"""Layouts of data sets whose tables are not `metadata.csv`: a file for each, which no other file names."""
