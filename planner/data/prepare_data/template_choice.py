"""Which chat template a conversation gets, as Hugging Face transformers chooses it: the one that is named; else
`tool_use` where the document has tools and there is one of this name; else `default`, or the only one."""
import glob
import os

from .files import read, read_config
from .problems import Problem, shown
from .records import MARK
from .template import ChatTemplate

DEFAULT, WITH_TOOLS = "default", "tool_use"   # names of transformers


def read_text(path):
    try:
        return read(path).decode()
    except UnicodeDecodeError as error:
        raise Problem(path, "expected a template in UTF-8, found other bytes") from error


def in_files(folder):
    """{name: (text, place)} of chat_template.jinja and additional_chat_templates/NAME.jinja, as transformers saves
    them. They come before those of tokenizer_config.json."""
    first = os.path.join(folder, "chat_template.jinja")
    found = {DEFAULT: first} if os.path.isfile(first) else {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "additional_chat_templates", "*.jinja"))):
        found[os.path.basename(path).removesuffix(".jinja")] = path
    return {name: (read_text(path), path) for name, path in found.items()}


def in_config(config, place):
    """The same of `chat_template` in a JSON file. Without names it is {None: (text, place)}; {} if there is none."""
    found = config.get("chat_template")
    if isinstance(found, list):
        found = {str(item.get("name")): item.get("template") for item in found if isinstance(item, dict)}
    elif found is not None:
        found = {None: found}
    for name, text in (found or {}).items():
        if not isinstance(text, str):
            raise Problem(place, f"chat_template: expected a text or a list of named ones, found {shown(text)}",
                          "give --template FILE.jinja")
    named = found is not None and None not in found
    return None if found is None else {name: (text, f"{place} ({name})" if named else place)
                                       for name, text in found.items()}


def templates(options, folder, config):
    """The texts to choose from, {name: (text, place)}, and the file that has them."""
    if options.template is not None and not options.template.endswith(".json"):
        if options.template_name is not None:
            raise Problem("--template-name", f"{options.template} is one template, without a name", "leave it out")
        return {None: (read_text(options.template), options.template)}, options.template
    if options.template is None:
        found = in_files(folder)
        if found and options.template_name in (None, *found):
            return found, folder
    place = options.template or os.path.join(folder, "tokenizer_config.json")
    found = in_config(read_config(options.template) if options.template else config, place)
    if found is None and options.template is not None:
        raise Problem(place, "chat_template: expected a text or a list of named ones, found null",
                      "give --template FILE.jinja")
    if found is None and options.template_name is not None:
        raise Problem(place, "it has no chat_template", "leave --template-name out")
    if found is not None and None in found and options.template_name is not None:
        raise Problem("--template-name", f"chat_template of {place} has no names", "leave it out")
    return found, place


def check_tokens(template, tokenizer, tokens, given):
    """Refuses a template that writes a special token which the tokenizer would spell in pieces."""
    for name, token in tokens.items():
        if name in template.reads and name not in given and token.text and token.text not in (MARK, *tokenizer.added):
            raise Problem(template.place, f"it writes {name}, which is {token.text!r} by {token.file}, and the added "
                          f"tokens of {tokenizer.path} lack it",
                          "write the tokenizer anew: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(OUT)")


def chat_template(options, folder, config, tokenizer, tokens):
    """The ChatTemplate of `options`, with the one of documents with tools; None if there is none. `tokens`: name ->
    NamedToken."""
    def made(text, place):
        variables = {name: token.text for name, token in tokens.items() if token.text is not None}
        absent = {name for name, token in tokens.items() if token.text is None}
        template = ChatTemplate(text, place, {**variables, **options.template_set}, options.date, absent)
        check_tokens(template, tokenizer, tokens, options.template_set)
        return template
    found, place = templates(options, folder, config)
    if found is None:
        return None
    if None in found:
        return made(*found[None])
    wanted = options.template_name or DEFAULT
    if wanted not in found:
        raise Problem(place, f"chat_template has no {wanted!r}: it has {', '.join(found) or 'none'}",
                      "choose one by --template-name")
    chosen = made(*found[wanted])
    if options.template_name is None and WITH_TOOLS in found:
        chosen.with_tools = made(*found[WITH_TOOLS])
    return chosen
