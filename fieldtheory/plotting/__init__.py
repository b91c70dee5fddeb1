"""Style, curves and tables with which results show themselves."""
