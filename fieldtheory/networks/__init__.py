"""What is asked about: families of networks, activations, coefficients of the layers."""
