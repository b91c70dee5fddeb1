"""Theory held against simulation: one comparison for every family of networks."""
