"""WHEN: which batch is made next, by whom, and when the loop gets it."""
