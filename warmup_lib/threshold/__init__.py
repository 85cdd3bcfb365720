"""Thresholds that keep a promise: from which similarity on an answer may serve another question.

A threshold is calibrated on pairs of questions that are known to share an answer or not, so that
the wrong hits among the hits stay under a bound, with a stated confidence.
"""
