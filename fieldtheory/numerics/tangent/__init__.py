"""What `tangent_kernels` returns, by what is trained and how."""
