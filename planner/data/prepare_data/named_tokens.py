"""Special tokens by their names, as Hugging Face transformers reads them from the files beside a tokenizer."""
import dataclasses
import os

from .conversation import GIVEN
from .files import read_config
from .problems import Problem

DICTIONARIES = ("model_specific_special_tokens", "extra_special_tokens")   # of names that may not end with _token
LISTS = ("extra_special_tokens", "additional_special_tokens")
ADDED = "added_tokens_decoder"   # of tokenizer_config.json; with it, transformers reads no special_tokens_map.json


@dataclasses.dataclass(frozen=True)
class NamedToken:
    text: str | None    # None: the file says that there is none
    file: str           # that names it, for people


def text_of(value):
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else None


def beside(folder, name):
    path = os.path.join(folder, name)
    return read_config(path) if os.path.isfile(path) else {}


def named_tokens(folder, config):
    """{name: NamedToken} of tokenizer_config.json, `config`, and of special_tokens_map.json, which comes before it."""
    found = {}
    files = [("tokenizer_config.json", config)]
    if ADDED not in config:
        files.append(("special_tokens_map.json", beside(folder, "special_tokens_map.json")))
    for name, value in files:
        tokens = {key: token for key, token in value.items() if key.endswith("_token")}
        for key in DICTIONARIES:
            tokens |= value[key] if isinstance(value.get(key), dict) else {}
        found |= {key: NamedToken(text_of(token), name) for key, token in tokens.items() if key not in GIVEN and
                  (token is None or text_of(token) is not None)}
    return found


def check_added(folder, config, tokenizer):
    """Refuses tokens that transformers adds to the tokenizer when it loads the folder: their ids are not known here,
    and a text that has them would be spelled in pieces."""
    if ADDED in config:
        named = [(ADDED + " of tokenizer_config.json", text_of(token)) for token in (config[ADDED] or {}).values()]
    else:
        named = [("added_tokens.json", text) for text in beside(folder, "added_tokens.json")]
    for key in LISTS:
        if isinstance(config.get(key), list):
            named += [(key + " of tokenizer_config.json", text_of(token)) for token in config[key]]
    lacking = [(place, text) for place, text in named if text and text not in tokenizer.added]
    if lacking:
        place, text = lacking[0]
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        raise Problem(tokenizer.path, f"its added tokens lack {text!r}{more}, which {place} adds",
                      "write it anew: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(OUT)")
