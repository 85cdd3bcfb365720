"""Metrics and spans: the instruments that others record with, their export, figures of the lake.

`instruments` stands on OpenTelemetry's API alone, so that what an application imports stays light.
"""
