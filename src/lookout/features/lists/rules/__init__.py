"""What follows from answers about lists: without I/O, clock or asyncio."""
