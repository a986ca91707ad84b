"""Reading results: records to frames, metrics, comparisons and cautions."""
