"""The chat template: a Jinja text that makes one text of the turns of a conversation, as Hugging Face renders it."""
import datetime
import hashlib
import json

import jinja2
import jinja2.ext
import jinja2.meta
import jinja2.sandbox

from .bounds import Beyond, bounded, joined, power
from .conversation import GIVEN
from .problems import Problem

REASONING = ("reasoning_content", "thinking", "reasoning")  # names of one thing; templates read the first
SWITCHES = ("enable_thinking", "thinking")   # variables that say whether a prompt asks for thinking
TOKEN = "_token"   # how the names of special tokens end


class Generation(jinja2.ext.Extension):
    """{% generation %}...{% endgeneration %}: others take masks from it. Masks here come from turns, so it is only its
    body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


class Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"**"})

    def call_binop(self, context, operator, left, right):
        return power(left, right)


class AsksForDate(Exception):
    pass


class UnknownToken(Exception):
    """A special token is written that nobody names. transformers writes nothing, and no model has learnt that."""


def undefined(absent):
    """What stands for a variable that nobody defines. `absent`: names of tokens of which a file says that there are
    none."""
    class Undefined(jinja2.Undefined):
        def __str__(self):
            name = self._undefined_name
            if self._undefined_obj is jinja2.utils.missing and str(name).endswith(TOKEN) and name not in absent:
                raise UnknownToken(name)
            return ""
    return Undefined


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class ChatTemplate:
    """`variables` are what the template sees beside messages and tools: texts of special tokens, --template-set.
    `absent`: names of special tokens of which a file says that there are none. Others must have a text to be written.
    `date` is today's date for templates that write it; without, such a template is refused: the same input must give
    the same bytes tomorrow. `with_tools`: another template, which documents with tools get, or None."""

    with_tools = None

    def __init__(self, text, place, variables=None, date=None, absent=()):
        self.place, self.variables, self.date = place, variables or {}, date
        self.text = text
        environment = Sandbox(trim_blocks=True, lstrip_blocks=True, undefined=undefined(frozenset(absent)),
                              extensions=[Generation, jinja2.ext.loopcontrols])
        environment.filters["tojson"] = to_json
        environment.globals["raise_exception"] = raise_exception
        environment.globals["strftime_now"] = self._strftime
        whole = "render it with Hugging Face transformers to see whether it is whole"
        try:
            with bounded():   # constants are computed when it is compiled
                self._compiled = environment.from_string(text)
                read = jinja2.meta.find_undeclared_variables(environment.parse(text))
        except jinja2.TemplateSyntaxError as error:
            raise Problem(f"{place}:{error.lineno}", f"the template is no Jinja: {error.message}", whole) from error
        except Beyond as error:
            raise Problem(place, f"the template has no bound: {error}", "give another template") from error
        except Exception as error:   # such as blocks that stand too deep in each other for Python
            raise Problem(place, f"the template cannot be compiled: {error or type(error).__name__}", whole) from error

        self.reads = frozenset(read)
        self.read = sorted(name for name in read - set(GIVEN) if not name.endswith(TOKEN))   # that may be set
        self.switch = next((name for name in SWITCHES if name in read), None)

    @property
    def sha256(self):
        """Of its text; of both texts, with a zero byte between them, if there is one for documents with tools."""
        texts = [self.text] + ([self.with_tools.text] if self.with_tools else [])
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def of(self, tools):
        """The template of a document with these tools, or None for none."""
        return self.with_tools if tools and self.with_tools else self

    def _strftime(self, form):
        if self.date is None:
            raise AsksForDate
        return datetime.datetime.combine(self.date, datetime.time()).strftime(form)

    def render(self, messages, tools, add_generation_prompt, place, variables=None):
        """The text of the turns. With `add_generation_prompt` what comes before the assistant's next turn is in it.
        `variables` come before those that all documents have."""
        turns = []
        for message in messages:
            turn = {key: value for key, value in message.items() if value is not None}
            reasoning = next((turn[key] for key in REASONING if key in turn), None)
            turns.append(turn if reasoning is None else {"thinking": reasoning, **turn, REASONING[0]: reasoning})
        try:
            with bounded():
                return joined(self._compiled.generate(messages=turns, tools=tools, documents=None,
                                                      add_generation_prompt=add_generation_prompt,
                                                      **{**self.variables, **(variables or {})}))
        except Beyond as error:
            problem = Problem(self.place, f"the template has no bound, with the turns of {place}: {error}",
                              "mend its loops, or give another template", kind=None)
            problem.stops = True
            raise problem from error
        except AsksForDate as error:
            raise Problem(self.place, "the template writes today's date, and the same input must always give the same "
                          "bytes", "say which date: --date 2026-01-31", kind="template") from error
        except UnknownToken as error:
            raise Problem(self.place, f"the template writes {error}, and no file beside the tokenizer says which token "
                          "it is", f"say it: --template-set {error}='\"TEXT\"'", kind="template") from error
        except Exception as error:  # a template is a program, and may fail in any way
            what = getattr(error, "message", None) or str(error) or type(error).__name__
            raise Problem(place, f"the template refuses the turns up to {len(messages)} "
                          f"({', '.join(str(message['role']) for message in messages[-4:])}): {what}",
                          "mend the turns, or give another template", kind="template") from error
