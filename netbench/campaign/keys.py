"""The base of every mapping of a campaign file: unknown and missing keys in netbench's words, each
error in its place.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails

from netbench.campaign import words


class Keys(BaseModel):
    """A mapping with known keys. A field's description is what a message about its absence says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _in_own_words(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict | cls):
            raise words.expected(f"a mapping with the keys {words.listed(cls.model_fields)}", data)
        try:
            return handler(data)
        except ValidationError as error:
            details = [cls._reword(e) for e in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, details) from None

    @classmethod
    def _reword(cls, error: ErrorDetails) -> InitErrorDetails:
        loc, key = error["loc"], str(error["loc"][0]) if error["loc"] else ""
        if error["type"] == "netbench":
            context = error["ctx"]
            said = words.wrong(context["text"], context["nearest"])
        elif error["type"] == "extra_forbidden":
            said = words.wrong(
                f"unknown key, expected {words.listed(cls.model_fields)}", cls.nearest_key(key)
            )
        elif error["type"] == "missing":
            said = words.wrong(
                f"missing, expected {cls.model_fields[key].description or 'a value'}"
            )
        else:  # pragma: no cover - no field leaves a check to pydantic
            said = words.wrong(error["msg"])
        return InitErrorDetails(type=said, loc=loc, input=error["input"])

    @classmethod
    def nearest_key(cls, key: str) -> str:
        """The known key that an unknown one may stand for, or ""."""
        return words.nearest(key, cls.model_fields)
