"""The symbolic field theory: action, saddle point, Hessian, propagator. Nothing here is numeric."""
