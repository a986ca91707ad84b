"""The base of each mapping of a campaign file. It words errors about unknown and missing keys."""

from __future__ import annotations

from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails, InitErrorDetails

from netbench.campaign.messages import expected, listed, nearest, wrong


def required(about: str, example: object) -> Any:
    """A key that has to be written. A message about its absence says what it is about."""
    return Field(description=about, examples=[example])


def optional(about: str, example: object, *, default: Any = None, shown: str = "") -> Any:
    """A key that may be left out. A word as `default` is read as one of the file is; `shown` is the
    default for readers where the field itself keeps None to tell that nothing was written.
    """

    def adapt(schema: JsonDict) -> None:
        word = shown or default
        if word is None:
            schema.pop("default", None)
        elif isinstance(word, str):
            number = schema.get("type") == "integer" and word.isdigit()
            schema["default"] = int(word) if number else word

    key: Any = Field(
        default=default,
        validate_default=True if isinstance(default, str) and default else None,
        description=about,
        examples=[example],
        json_schema_extra=adapt,
    )
    return key


class Keys(BaseModel):
    """A mapping with known keys, each declared by `required` or `optional`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _in_own_words(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict | cls):
            raise expected(f"a mapping with the keys {listed(cls.model_fields)}", data)
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
            message = wrong(context["text"], context["nearest"])
        elif error["type"] == "extra_forbidden":
            message = wrong(
                f"unknown key, expected {listed(cls.model_fields)}", cls.nearest_key(key)
            )
        elif error["type"] == "missing":
            message = wrong(f"missing, expected {key}: {cls.model_fields[key].description}")
        else:  # pragma: no cover - no field leaves a check to pydantic
            message = wrong(error["msg"])
        return InitErrorDetails(type=message, loc=loc, input=error["input"])

    @classmethod
    def nearest_key(cls, key: str) -> str:
        """The known key that an unknown one may stand for, or ""."""
        return nearest(key, cls.model_fields)
