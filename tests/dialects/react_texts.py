"""ReAct texts for property tests: the pieces of real ones, put together in any way."""

from __future__ import annotations

from hypothesis import strategies as st

from toolturn import ToolDef

PROPERTIES = {"search": {"q": {"type": "string"}}, "calc": {"e": {"type": "string"}}, "today": {}}
TOOLS = tuple(
    ToolDef(name, "", {"type": "object", "properties": properties, "required": list(properties)})
    for name, properties in PROPERTIES.items()
)

_PIECES = [
    *("Thought:", "Action:", "Action Input:", "Observation:", "Final Answer:", "FINAL_ANSWER", "Final Answer - "),
    *("**Final Answer:**", "**Final Answer: 8**", "**", "Answer:", "Question:", "Action: Final Answer", "Finish[8]"),
    *("search", "calc", "today", "google", "buy milk", "None", 'search(q="x")', "search[x]", "Action: search"),
    *('{"q": "x"}', "{'e': 1}", "{", "}", '"', "“", "”", "(", ")", "[", "]", "`", "```", "```json", "~~~"),
    *("<think>", "</think>", "<thinking>", "[THINK]", "<tool_call>", "</tool_call>"),
    *('{"name": "search", "arguments": {"q": "x"}}', 'Action: search\nAction Input: {"q": "x"}'),
    *("\n", "\n", "\n", "\n\n", " ", "  ", "\r\n", "\t", "\x0b", "> ", "# ", "- ", "* ", "_", "é", "："),
    *("Aktion:", "Gedanke:", "Ação: search", "Действие: search", "Action", "Final", "Final Answer", "FinalAnswer"),
    *("hello", "The answer is 8.", "I will search for it. " * 12, "x" * 60),
]

texts = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=4)), max_size=14).map("".join)
cuts = st.lists(st.integers(1, 9), min_size=1, max_size=10)
