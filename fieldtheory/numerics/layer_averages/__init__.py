"""The averages that one layer takes, of one signal and of two, whatever their variances."""
