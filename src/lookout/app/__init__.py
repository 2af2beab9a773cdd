"""The one place that builds real things out of settings."""
