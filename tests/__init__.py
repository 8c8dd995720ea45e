"""Stoker's tests. STYLE: a test's name is the law that it holds."""
