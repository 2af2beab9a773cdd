"""The example's own tests run where it is installed."""

collect_ignore = ["example"]
