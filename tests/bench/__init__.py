"""`make bench`: ranked recall beside its peers, on one server in one run. See docs/benchmark.md."""
