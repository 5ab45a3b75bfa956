"""What a model is told so that it writes ReAct text, in its user's language; the key words stay English.

Key words of the language are read too; in the prompt they are English because most of what models have read of ReAct
is. That was not compared by measuring.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..messages import ToolDef

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_MAX_CHOICES = 60
_LONG = 60


@dataclass(frozen=True, slots=True)
class ReActPrompt:
    """The sentences a model is told.

    Args:
        system: Stands at the end of the system message, or is it. ``{tools}`` becomes the list of the tools,
            ``{names}`` their names, ``{tasks}`` the first sentence of each description, ``{first}`` the name of the
            first one and ``{example}`` a call of it. Other braces stay as they are.
        answer: Asks for the answer when no more tools are allowed.
        required: Asks for a call when there has to be one.
        named: Asks for a call of the tool ``{name}``.
        observed: Stands behind the last observation; small models call the same tool again without it.

    Raises:
        ValueError: A placeholder is missing or unknown.
    """

    system: str
    answer: str
    required: str
    named: str
    observed: str = ""

    def __post_init__(self) -> None:
        _check("system", self.system, {"tools"}, {"names", "tasks", "first", "example"})
        _check("answer", self.answer, set(), set())
        _check("required", self.required, set(), set())
        _check("named", self.named, {"name"}, set())
        _check("observed", self.observed, set(), set())


def _check(field: str, text: str, needed: set[str], allowed: set[str]) -> None:
    found = set(_PLACEHOLDER.findall(text))
    if missing := needed - found:
        raise ValueError(f"the text {field!r} of the prompt needs the placeholder {{{min(missing)}}}")
    if unknown := found - needed - allowed:
        known = ", ".join(f"{{{name}}}" for name in sorted(needed | allowed)) or "none"
        raise ValueError(
            f"the text {field!r} of the prompt has an unknown placeholder {{{min(unknown)}}}; known: {known}"
        )


PROMPTS: Mapping[str, ReActPrompt] = MappingProxyType(
    {
        "en": ReActPrompt(
            """Use a tool to {tasks}. Otherwise answer directly.

You can use these tools:
{tools}

Without a tool, write:
Thought: I need no tool.
Final Answer: what you tell the user

To use a tool, write for example these lines and stop:
Thought: I need {first}.
{example}""",
            "Use no more tools. Write the Final Answer now, from the observations you have.",
            "You must use a tool now: write an Action.",
            "You must use the tool {name} now: write an Action.",
            "Write the Final Answer now if this is the result, else the next Action.",
        ),
        "de": ReActPrompt(
            """Du kannst diese Werkzeuge benutzen:
{tools}

Ohne Werkzeug schreibe:
Thought: Ich brauche kein Werkzeug.
Final Answer: was du dem Benutzer auf Deutsch sagst

Um ein Werkzeug zu benutzen, schreibe solche Zeilen und halte an. Die englischen Wörter vor dem Doppelpunkt bleiben:
Thought: Ich brauche {first}.
{example}""",
            "Benutze kein Werkzeug mehr. Schreibe jetzt die Final Answer aus dem, was du weißt.",
            "Du musst jetzt ein Werkzeug benutzen: schreibe eine Action.",
            "Du musst jetzt das Werkzeug {name} benutzen: schreibe eine Action.",
            "Schreibe jetzt die Final Answer, wenn das das Ergebnis ist, sonst die nächste Action.",
        ),
        "es": ReActPrompt(
            """Puedes usar estas herramientas:
{tools}

Sin herramienta, escribe:
Thought: No necesito herramienta.
Final Answer: lo que dices al usuario en español

Para usar una herramienta, escribe líneas como estas y para. Las palabras inglesas antes de los dos puntos no cambian:
Thought: Necesito {first}.
{example}""",
            "No uses más herramientas. Escribe ahora la Final Answer con lo que sabes.",
            "Ahora debes usar una herramienta: escribe una Action.",
            "Ahora debes usar la herramienta {name}: escribe una Action.",
            "Escribe ahora la Final Answer si este es el resultado, o si no la siguiente Action.",
        ),
        "fr": ReActPrompt(
            """Tu peux utiliser ces outils :
{tools}

Sans outil, écris :
Thought: Je n'ai pas besoin d'outil.
Final Answer: ce que tu dis à l'utilisateur en français

Pour utiliser un outil, écris des lignes comme celles-ci et arrête-toi. Les mots anglais avant les deux-points restent :
Thought: J'ai besoin de {first}.
{example}""",
            "N'utilise plus d'outil. Écris maintenant la Final Answer avec ce que tu sais.",
            "Tu dois maintenant utiliser un outil : écris une Action.",
            "Tu dois maintenant utiliser l'outil {name} : écris une Action.",
            "Écris maintenant la Final Answer si c'est le résultat, sinon l'Action suivante.",
        ),
        "it": ReActPrompt(
            """Puoi usare questi strumenti:
{tools}

Senza strumento, scrivi:
Thought: Non mi serve uno strumento.
Final Answer: ciò che dici all'utente in italiano

Per usare uno strumento, scrivi righe come queste e fermati. Le parole inglesi prima dei due punti restano:
Thought: Mi serve {first}.
{example}""",
            "Non usare altri strumenti. Scrivi ora la Final Answer con quello che sai.",
            "Ora devi usare uno strumento: scrivi una Action.",
            "Ora devi usare lo strumento {name}: scrivi una Action.",
            "Scrivi ora la Final Answer se questo è il risultato, altrimenti la prossima Action.",
        ),
        "nl": ReActPrompt(
            """Je kunt deze hulpmiddelen gebruiken:
{tools}

Zonder hulpmiddel schrijf je:
Thought: Ik heb geen hulpmiddel nodig.
Final Answer: wat je de gebruiker in het Nederlands vertelt

Schrijf om een hulpmiddel te gebruiken zulke regels en stop dan. De Engelse woorden voor de dubbele punt blijven:
Thought: Ik heb {first} nodig.
{example}""",
            "Gebruik geen hulpmiddelen meer. Schrijf nu het Final Answer met wat je weet.",
            "Je moet nu een hulpmiddel gebruiken: schrijf een Action.",
            "Je moet nu het hulpmiddel {name} gebruiken: schrijf een Action.",
            "Schrijf nu het Final Answer als dit het resultaat is, anders de volgende Action.",
        ),
        "pt": ReActPrompt(
            """Podes usar estas ferramentas:
{tools}

Sem ferramenta, escreve:
Thought: Não preciso de ferramenta.
Final Answer: o que dizes ao utilizador em português

Para usar uma ferramenta, escreve linhas como estas e para. As palavras inglesas antes dos dois pontos ficam:
Thought: Preciso de {first}.
{example}""",
            "Não uses mais ferramentas. Escreve agora a Final Answer com o que sabes.",
            "Agora tens de usar uma ferramenta: escreve uma Action.",
            "Agora tens de usar a ferramenta {name}: escreve uma Action.",
            "Escreve agora a Final Answer se este é o resultado, senão a próxima Action.",
        ),
    }
)
"""The prompts by language."""


def prompt_of(given: str | ReActPrompt | None, language: str) -> ReActPrompt:
    """Return the prompt for a language, or the one that is given.

    Args:
        given: A whole prompt, or the text of its system message; None for the built-in one.
        language: A tag such as ``de`` or ``pt-BR``; English where there is no prompt for it.

    Raises:
        ValueError: A placeholder is missing or unknown.
    """
    if isinstance(given, ReActPrompt):
        return given
    base = PROMPTS.get(language.partition("-")[0].partition("_")[0].lower(), PROMPTS["en"])
    return base if given is None else ReActPrompt(given, base.answer, base.required, base.named, base.observed)


def system_text(prompt: ReActPrompt, tools: Sequence[ToolDef]) -> str:
    """Return the prompt with the tools in it.

    Args:
        prompt: The prompt.
        tools: What is offered.
    """
    values = {
        "tools": "\n".join(signature(tool) for tool in tools),
        "names": ", ".join(tool.name for tool in tools),
        "tasks": _tasks(tools),
        "first": tools[0].name if tools else "",
        "example": _example(tools[0]) if tools else "",
    }
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), prompt.system)


def _tasks(tools: Sequence[ToolDef]) -> str:
    # a small model calls a tool only if it is told what for before it reads the list
    tasks = [_one_line(tool.description).partition(". ")[0].rstrip(".") or tool.name for tool in tools]
    return "; ".join(task[:1].lower() + task[1:] for task in tasks)


def _example(tool: ToolDef) -> str:
    """A call of a tool with something in the place of each value that has to be there."""
    schema: Any = tool.parameters
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    required = schema.get("required") if isinstance(schema, Mapping) else None
    made: dict[str, Any] = {}
    for name in required if isinstance(required, (list, tuple)) else ():
        about = properties.get(name) if isinstance(properties, Mapping) else None
        made[name] = _example_value(about if isinstance(about, Mapping) else {})
    return f"Action: {tool.name}\nAction Input: {json.dumps(made, ensure_ascii=False, default=str)}"


def _example_value(schema: Mapping[str, Any]) -> Any:
    for key in ("examples", "enum"):
        values = schema.get(key)
        if isinstance(values, (list, tuple)) and values:
            return values[0]
    kinds: dict[Any, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    kind = schema.get("type")
    return kinds.get(kind, "...") if isinstance(kind, str) else "..."


def signature(tool: ToolDef) -> str:
    """Return a tool in one line: ``name(param: type, other?: type) - description``.

    What may be left out has a question mark or a default.

    Args:
        tool: The tool; of its schema only what a model needs to fill it in is told, the rest is checked.
    """
    schema: Any = tool.parameters
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    needed = schema.get("required") if isinstance(schema, Mapping) else None
    required = needed if isinstance(needed, (list, tuple)) else ()
    told: list[str] = []
    about: list[str] = []
    seen: dict[str, str] = {}  # a long list of choices is told once
    for name, value in properties.items() if isinstance(properties, Mapping) else ():
        parameter = value if isinstance(value, Mapping) else {}
        kind = _type(parameter, schema)
        kind = f"same as {seen[kind]}" if kind in seen else kind
        if len(kind) > _LONG:
            seen[kind] = name
        default = parameter.get("default")
        if name in required:
            told.append(f"{name}: {kind}")
        elif default is None:
            told.append(f"{name}?: {kind}")
        else:
            told.append(f"{name}: {kind} = {json.dumps(default, ensure_ascii=False)}")
        if isinstance(parameter.get("description"), str):
            about.append(f"{name}: {_one_line(parameter['description'])}")
    line = f"{tool.name}({', '.join(told)}) - {_one_line(tool.description)}"
    return f"{line} [{'; '.join(about)}]" if about else line


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _type(schema: Mapping[str, Any], root: Any, depth: int = 0) -> str:
    for _ in range(8):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        found: Any = root
        for step in reference.removeprefix("#/").split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        schema = found if isinstance(found, Mapping) else {}
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    choices = schema.get("enum")
    if isinstance(choices, (list, tuple)) and 0 < len(choices) <= _MAX_CHOICES:
        return "|".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(branches, (list, tuple)) and depth < 3:
        kinds = [_type(each, root, depth + 1) for each in branches if isinstance(each, Mapping)]
        return "|".join(dict.fromkeys(kind for kind in kinds if kind != "null")) or "any"
    kind = schema.get("type")
    if isinstance(kind, (list, tuple)):
        return "|".join(str(each) for each in kind if each != "null")
    if kind == "array":
        items = schema.get("items")
        return f"[{_type(items, root, depth + 1)}]" if isinstance(items, Mapping) and depth < 3 else "array"
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and depth < 3:
        inner = ", ".join(
            f"{name}: {_type(each, root, depth + 1)}" for name, each in properties.items() if isinstance(each, Mapping)
        )
        return f"{{{inner}}}"
    return kind if isinstance(kind, str) else "any"
