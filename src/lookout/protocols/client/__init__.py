"""The HTTP client for requests to third parties."""
