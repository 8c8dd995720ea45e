"""SAYING it: a run as text, JSON, a patch, a list. Computes nothing."""
