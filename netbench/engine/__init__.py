"""netbench: benchmark campaigns of network transfers."""
