"""The tokenizer, its special ids and its template, from the files that the arguments name and those beside them."""
import dataclasses
import os

from . import special_ids
from .encode import Encoder
from .files import read, read_config
from .named_tokens import NamedToken, check_added, named_tokens
from .problems import Problem, Problems
from .template import ChatTemplate
from .template_choice import chat_template
from .tokenizer import Tokenizer


@dataclasses.dataclass
class Loaded:
    tokenizer: Tokenizer
    template: ChatTemplate | None
    ids: dict            # "image", "pad", "end" -> SpecialId
    encoder: Encoder
    vocabulary: int
    settings: list       # what was taken, as (name, value), for people

    def others(self):
        """Ids that the tokenizer has not, and what to call them."""
        return {found.id: f"<{role}>" for role, found in self.ids.items()
                if found.id is not None and not self.tokenizer.text_of(found.id)}


def begin_of(tokenizer, argument):
    """Id before each text, and words for people."""
    if argument == "none":
        return None, "none"
    if argument is not None:
        found = special_ids.named(tokenizer, "--begin-token", argument)
        return found.id, f"{found.text} {found.id}"
    before = tokenizer.before_a_text()
    if len(before) > 1:
        raise Problem("--begin-token", f"the tokenizer puts {len(before)} ids before a text: {before}",
                      "say one, or none")
    return (before[0], f"{tokenizer.text_of(before[0])} {before[0]} (the tokenizer puts it there)") if before else \
        (None, "none")


def has_words(config):
    """Whether the model of a config.json, or a part of it, has a vocabulary."""
    return "vocab_size" in config or any(isinstance(part, dict) and "vocab_size" in part for part in config.values())


def tokenizer_file(path):
    """The tokenizer.json that --tokenizer names, itself or by its folder."""
    if not os.path.isdir(path):
        return path
    file, beside = os.path.join(path, "tokenizer.json"), os.path.join(path, "config.json")
    if os.path.isfile(beside) and not os.path.lexists(file):
        config = read_config(beside)
        kind = f"model_type {config['model_type']}" if "model_type" in config else "without model_type"
        if not has_words(config):
            raise Problem(path, f"it has no tokenizer.json: its config.json is of an encoder ({kind})",
                          "give the folder of the language model")
        raise Problem(path, f"it has config.json ({kind}) and no tokenizer.json",
                      "other kinds must be converted first: docs/training/prepare_data.md")
    return file


def load(options):
    path = tokenizer_file(options.tokenizer)
    tokenizer = Tokenizer(path, read(path))
    folder = os.path.dirname(path)
    beside = os.path.join(folder, "tokenizer_config.json")
    config = read_config(beside) if os.path.isfile(beside) else {}
    given = {role: getattr(options, f"{role}_token") for role in ("image", "pad", "end")}
    tokens = named_tokens(folder, config)
    special, problems = special_ids.special_ids(tokenizer, tokens, given)
    if "eos_token" not in tokens and "end" in special and special["end"].text:
        tokens["eos_token"] = NamedToken(special["end"].text, special["end"].source)
    template = begin = None
    settings = [("tokenizer", f"{path}, {tokenizer.vocabulary:,} ids")]
    try:
        begin, words = begin_of(tokenizer, options.begin_token)
        settings.append(("begin", words))
    except Problem as problem:
        problems.append(problem)
    as_special = set(options.as_special)
    unknown = sorted(as_special - {"all", *tokenizer.specials})
    if unknown:
        problems.append(Problem("--as-special", f"expected special tokens of the tokenizer, found {' '.join(unknown)}",
                                f"they are {' '.join(tokenizer.specials) or 'none'}"))
    try:
        check_added(folder, config, tokenizer)
        template = chat_template(options, folder, config, tokenizer, tokens)
        settings += [("template", template.place if template else "none")]
        if template is not None and template.with_tools:
            settings.append(("with tools", template.with_tools.place))
        if template is not None and template.switch and template.switch not in options.template_set:
            settings.append((template.switch, "as each turn of the assistant fits, unless its document says it"))
    except Problem as problem:
        problems.append(problem)
    if problems:
        raise Problems(problems)
    for role in ("image", "pad", "end"):
        found = special[role]
        words = f"{found.text} {found.id}".strip() + f" ({found.source})"
        settings.append((role, "none" if found.id is None else words))
    tokenizer.finish(special["image"].id, set(tokenizer.specials) if "all" in as_special else as_special)
    vocabulary = max(tokenizer.vocabulary, *(found.id + 1 for found in special.values() if found.id is not None))
    encoder = Encoder(tokenizer, template, {role: found.id for role, found in special.items()}, begin,
                      options.append_end, options.learn or "assistant")
    return Loaded(tokenizer, template, special, encoder, vocabulary, settings)
