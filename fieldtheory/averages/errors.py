"""What is raised where an integral misses its tolerance."""


class QuadratureError(ArithmeticError):
    """An average in float64 did not reach the tolerance."""


class PrecisionError(ArithmeticError):
    """An integral did not reach the digits asked for."""
