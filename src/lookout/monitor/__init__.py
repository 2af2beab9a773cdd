"""Watching, agreeing on heads, publishing, telling people, recording, measuring; and all that in rehearsal."""
