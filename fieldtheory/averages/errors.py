"""What is raised where an integral misses its tolerance."""


class QuadratureError(ArithmeticError):
    """An average in float64 did not reach the tolerance.

    Examples
    --------
    >>> issubclass(QuadratureError, ArithmeticError)
    True
    """


class PrecisionError(ArithmeticError):
    """An integral in mpmath did not reach the digits asked for.

    Examples
    --------
    >>> issubclass(PrecisionError, ArithmeticError)
    True
    """
