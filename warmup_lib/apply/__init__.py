"""Warming a plan on its targets: order, concurrency, retries, receipts, resume."""
