"""WHAT is read, in which order, with which random numbers. Knows no workers."""
