"""The sample log: a composed request log of two weeks, written by `python -m samples`.

It imports nothing of `warmup_lib`, so that it can't know what it is used to measure.
"""
