"""What belongs to the machine and the process: files, memory, modes of PyTorch, random numbers, provenance."""
