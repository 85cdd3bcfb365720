"""Which fields of requests the answers really depend on, and what each costs in a cache's key."""
