"""What every room may use: errors, units, files written whole, Ctrl-C, the terminal."""
