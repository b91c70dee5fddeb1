"""Functions that grow exponentially or in any other way, of signals of any size."""
