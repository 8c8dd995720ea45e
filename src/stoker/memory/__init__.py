"""BYTES: shared memory that batches are made in and handed out from."""
