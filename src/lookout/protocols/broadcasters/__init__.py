"""Broadcasters and their announcements, read from a waku node."""
