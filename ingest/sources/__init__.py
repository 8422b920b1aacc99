"""Documents from files: lines, records, Parquet, and the reader over them."""
