"""Campaign files with comments, which `init` writes."""
