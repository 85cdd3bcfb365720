"""What Airflow needs of this package; no other room imports Airflow.

DAG files import from here only. Whatever reads the lake or talks to a target is imported when a
task runs, because Airflow parses DAG files again every few seconds.
"""
