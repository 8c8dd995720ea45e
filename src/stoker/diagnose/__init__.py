"""WHY: pure rules over a summary."""
