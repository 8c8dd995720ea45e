"""WHICH plan: what another plan would bring, from what was measured."""
