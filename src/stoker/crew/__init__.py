"""WHO makes the batches: worker processes, the foreman that forks them, and messages."""
