"""The adapters to the third parties: one file per protocol, fetching and parsing apart.

A source is asked once (``probe``) and answers with what it found for each of its checks. Whatever a third party does
ends as a found value or as ``ProbeFailed`` with a short reason; any other exception is a bug. Nothing here reads a
clock: a function gives the current instant.
"""
