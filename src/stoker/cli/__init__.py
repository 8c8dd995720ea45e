"""The `stoker` command: one file a subcommand. Its `--help` imports no torch."""
