"""Choosing what to warm: demand, weighted coverage, drift and the difference of two plans."""
