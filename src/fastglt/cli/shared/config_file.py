"""A YAML file of options, read as texts; imported only where there is one, because the parser takes a while."""

from pathlib import Path
from typing import Any

import yaml

from fastglt.errors import InputError

_MOST = 1 << 18  # bytes of a config


class _Texts(yaml.BaseLoader):
    """Reads values as they stand there, as they would stand on the command line: 1:30 is no number of minutes."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are there once."""
        seen: set[str] = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str) or name in seen:
                got = f"'{name}' twice" if isinstance(name, str) else "a name that is no text"
                raise yaml.constructor.ConstructorError(None, None, got, node.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


def is_nothing(value: object) -> bool:
    """Whether a value of the file says that there is none."""
    return value is None or (isinstance(value, str) and value.lower() in ("", "~", "null"))


def load(path: Path) -> dict[str, Any]:
    """What a YAML file maps names to; whatever is wrong with it is one line."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST + 1)
        if len(content) > _MOST:
            raise InputError(f"the config '{path}' must have at most {_MOST:,} bytes (got more)")
        values = yaml.load(content.decode(), _Texts)  # it makes nothing but texts
    except OSError as error:
        raise InputError(f"cannot read the config '{path}' ({error.strerror})") from None
    except RecursionError:
        raise InputError(
            f"the config '{path}' must be YAML (got lists or mappings too deep in each other)"
        ) from None
    except InputError:
        raise
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
        LookupError,
        AttributeError,
    ) as error:  # some slip out of PyYAML
        raise InputError(f"the config '{path}' must be YAML (got: {' '.join(str(error).split())})") from None
    values = {} if is_nothing(values) else values
    if not isinstance(values, dict):
        raise InputError(f"the config '{path}' must map option names to values (got {type(values).__name__})")
    return values
