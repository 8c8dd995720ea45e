"""Shipped for tests: datasets that fail on purpose, and what a process left behind."""
