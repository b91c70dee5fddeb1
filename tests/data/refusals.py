"""The message of a refusal."""

import pytest


def refusal(call, *args, error=ValueError, **kwargs):
    """The message of the refusal, which must be one line."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


def named(words, call, *args, **kwargs):
    """The message of the refusal has all of these words."""
    message = refusal(call, *args, **kwargs)
    assert [word for word in words if word not in message] == [], message
