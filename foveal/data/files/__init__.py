"""Files of every kind: archives, tables, folders, UTF-8 text."""
