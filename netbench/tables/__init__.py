"""Results as tables for other programs: runs, cells, samples and facts, in DuckDB, Parquet and CSV;
and runs in the forms that benchstat, ministat and Otava read.
"""
