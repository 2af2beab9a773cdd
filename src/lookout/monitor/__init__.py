"""The monitor: watching, agreeing on heads, publishing, alerting, recording, measuring."""
