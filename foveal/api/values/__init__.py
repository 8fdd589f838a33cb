"""Values in memory as DATA: any table, list or arrays become columns, which are stored as Parquet."""
