"""Unmodified scripts: started as they are, and watched."""
