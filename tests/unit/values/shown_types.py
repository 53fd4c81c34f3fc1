"""Types that the tests of values share: one of each kind that a signature may name."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, StrEnum
from typing import Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field, RootModel, SecretStr

from ackbox import BigInt

T = TypeVar("T")
OrderId = NewType("OrderId", int)


class Priority(StrEnum):
    """An enum that is text."""

    LOW = "low"
    HIGH = "high"


class Level(IntEnum):
    """An enum that is a number."""

    ONE = 1
    TWO = 2


class Kind(Enum):
    """An enum of values that are stored as text."""

    DAY = timedelta(days=1)
    NAMED = "named"


class Rights(IntFlag):
    """Flags."""

    READ = 1
    WRITE = 2


@dataclass
class Line:
    """A dataclass that holds itself."""

    price: Decimal
    tags: set[str] = field(default_factory=set)
    parts: list[Line] = field(default_factory=list)
    note: str = "none"


@dataclass(frozen=True, slots=True)
class Box(Generic[T]):
    """A generic dataclass."""

    content: T


class Point(NamedTuple):
    """A named tuple with a default."""

    x: int
    y: Decimal = Decimal("0.0")


class Address(TypedDict):
    """A typed dict with a key that may be missing."""

    street: str
    since: NotRequired[date]


class Customer(BaseModel):
    """A model with a set, a constraint, an alias and something of any kind."""

    name: str
    born: date | None = None
    ids: set[UUID] = set()
    age: int = Field(default=1, gt=0, description="in years")
    mail_to: str = Field(default="", alias="mailTo")
    extra: Any = None

    model_config = {"populate_by_name": True}


class Employee(Customer):
    """A subclass with a field more."""

    boss: str = "nobody"


class Account(BaseModel):
    """A model with a secret in it."""

    user: str
    password: SecretStr | None = None
    token: SecretStr = SecretStr("s3cret")


class Numbers(RootModel[list[int]]):
    """A model that is its root."""


class Open(BaseModel):
    """A model that takes any other field too."""

    known: int = 0

    model_config = {"extra": "allow"}


class Cat(BaseModel):
    """One of two models."""

    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    """The other of two models, with the same fields."""

    kind: Literal["dog"] = "dog"
    lives: int = 1


class Owner(BaseModel):
    """A model with a union told apart by its tag, and with types that are stored as text."""

    pet: Cat | Dog = Field(discriminator="kind")
    worth: Decimal = Decimal("0.0")
    photo: bytes = b""
    known_for: timedelta = timedelta()
    number: BigInt = 0
