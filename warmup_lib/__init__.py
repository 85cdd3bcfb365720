"""The warm-up planner's library: everything the command line, the DAGs and applications call."""

__version__ = "0.1.0"
