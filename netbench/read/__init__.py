"""Reading results: records to frames, metrics, comparisons and cautions. `load.py` alone reads files."""
