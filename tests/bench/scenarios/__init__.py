"""One module a kind of host. Each loads what it needs, measures its cases and takes its databases away."""
