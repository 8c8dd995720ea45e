"""HOW LONG: what was measured, in a file, and the numbers made of it."""
