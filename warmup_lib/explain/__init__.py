"""Explaining: each miss of a window gets one cause from the closed list, with what shows it."""
