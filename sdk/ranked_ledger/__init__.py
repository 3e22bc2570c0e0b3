"""Ranked Ledger."""
