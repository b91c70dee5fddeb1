"""The recursions of infinite width: kernels, responses, tangent kernels, their derivatives."""
