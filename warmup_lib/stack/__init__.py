"""The embedded Redis and model host of the demo and the tests: set up, start, look at, stop.

Nothing here is for production: the servers listen on loopback only, keep nothing on disk and are
sized for one small machine. Why these binaries, under which licences: docs/adr/0003.
"""

from warmup_lib.stack.lifecycle import adapter_folders, down, status, up
from warmup_lib.stack.state import Service, StackState

__all__ = ["Service", "StackState", "adapter_folders", "down", "status", "up"]
