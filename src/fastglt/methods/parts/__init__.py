"""What methods are made of: how many elements change, which ones, forests, distances, rounds."""
