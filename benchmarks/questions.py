"""Ask the embedded model questions with known results, through ``toolturn ask`` itself.

    python benchmarks/questions.py            # the first set: 26 questions for a tool, 4 for none
    python benchmarks/questions.py --set all  # and the ones that were kept apart while descriptions were written
    python benchmarks/questions.py --dialect react  # through ReAct text instead of the grammar
    python benchmarks/questions.py --check    # exit code 1 when fewer than 24 right tools or 22 right results

Each question is a process of its own at temperature 0, so the seconds are what a user waits on this machine,
loading the file included; through ReAct all are asked in one process, and the first one loads the file.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the tool it needs, and what the tool's result must hold.

    Args:
        text: What is asked.
        tool: The tool; None where an answer needs none.
        value: A number or text in the tool's result; in the answer where there is no tool.
    """

    text: str
    tool: str | None
    value: str | None = None


FIRST = [
    Question("What is 17 * 24?", "calculator", "408"),
    Question("What is 1234 + 5678?", "calculator", "6912"),
    Question("Calculate 15% of 240.", "calculator", "36"),
    Question("How much is 1000 divided by 8?", "calculator", "125"),
    Question("What is (3 + 4) * 12?", "calculator", "84"),
    Question("I buy 7 books at 12.50 each. What do I pay in total?", "calculator", "87.5"),
    Question("What's 99 squared?", "calculator", "9801"),
    Question("If 3 friends share a 96 dollar bill equally, how much does each pay?", "calculator", "32"),
    Question("What is 2048 minus 777?", "calculator", "1271"),
    Question("A train travels 85 km per hour for 6 hours. How far does it go?", "calculator", "510"),
    Question("Multiply 345 by 678.", "calculator", "233910"),
    Question("What is the sum of 12, 45 and 88?", "calculator", "145"),
    Question("Convert 10 kilometers to miles.", "convert_units", "6.21"),
    Question("How many pounds is 70 kg?", "convert_units", "154.32"),
    Question("What is 100 fahrenheit in celsius?", "convert_units", "37.78"),
    Question("How many centimeters are in 12 inches?", "convert_units", "30.48"),
    Question("Convert 5 gallons to liters.", "convert_units", "18.93"),
    Question("25 celsius in fahrenheit?", "convert_units", "77"),
    Question("How many feet is 3 meters?", "convert_units", "9.84"),
    Question("What time is it in Tokyo?", "current_time", "Asia/Tokyo"),
    Question("What's the current time in London?", "current_time", "Europe/London"),
    Question("What time is it in New York right now?", "current_time", "America/New_York"),
    Question("Tell me the time in UTC.", "current_time", "UTC"),
    Question("What is today's date in Paris?", "current_time", "Europe/Paris"),
    Question("How many days are there between 2024-01-01 and 2024-03-01?", "days_between", "60"),
    Question("How many days from 2025-06-10 to 2025-12-25?", "days_between", "198"),
    Question("Hello! How are you?", None),
    Question("What is the capital of France?", None, "paris"),
    Question("Write one short sentence about cats.", None),
    Question("What colour is the sky on a clear day?", None, "blue"),
]

APART = [
    Question("What is 144 divided by 12?", "calculator", "12"),
    Question("What's the square root of 1764?", "calculator", "42"),
    Question("Compute (12 + 30) * 3 - 6.", "calculator", "120"),
    Question("I save 250 euros per month. How much is that in 3 years?", "calculator", "9000"),
    Question("What is 7% of 350?", "calculator", "24.5"),
    Question("What is 3 to the power of 7?", "calculator", "2187"),
    Question("A box holds 24 bottles. How many bottles are in 17 boxes?", "calculator", "408"),
    Question("How many liters are 3 gallons?", "convert_units", "11.36"),
    Question("Convert 68 fahrenheit to celsius.", "convert_units", "20"),
    Question("How many kilometers is 26 miles?", "convert_units", "41.84"),
    Question("5 pounds in kilograms?", "convert_units", "2.27"),
    Question("How many inches are in 2 meters?", "convert_units", "78.74"),
    Question("What time is it in Sydney?", "current_time", "Australia/Sydney"),
    Question("Which day is it today in Berlin?", "current_time", "Europe/Berlin"),
    Question("What is the current time in Los Angeles?", "current_time", "America/Los_Angeles"),
    Question("How many days are between 2026-01-15 and 2026-02-14?", "days_between", "30"),
    Question("What weekday was 2000-01-01?", "weekday", "Saturday"),
    Question("On which weekday does 2027-07-04 fall?", "weekday", "Sunday"),
    Question("What date is 90 days after 2026-11-30?", "add_days", "2027-02-28"),
    Question("What date was 10 days before 2026-03-05?", "add_days", "2026-02-23"),
    Question("Who wrote Romeo and Juliet?", None, "shakespeare"),
    Question("Tell me a joke.", None),
    Question("Thank you, that was helpful!", None),
]

RIGHT_TOOLS, RIGHT_RESULTS = 24, 22


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question went.

    Args:
        question: The question.
        tool: Whether the first call is of the right tool; of no tool, where none is needed.
        result: Whether a result of it holds the value.
        answer: Whether the answer does too.
        seconds: How long the process ran.
        said: The calls and the answer, for people.
    """

    question: Question
    tool: bool
    result: bool
    answer: bool
    seconds: float
    said: str


def holds(text: str, value: str) -> bool:
    """Whether the text holds the value, not as part of a longer number; ``87.50`` holds ``87.5``."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text).lower()
    tail = "0*" if "." in value else r"(?:\.0+)?"
    return re.search(rf"(?<![\d.]){re.escape(value.lower())}{tail}(?!\.?\d)", plain) is not None


@dataclass(frozen=True, slots=True)
class Ran:
    """One call of a tool, as far as it is judged."""

    tool: str
    arguments: str
    result: str
    status: str


def ask(question: Question) -> Outcome:
    """Ask one question through the command line, which uses the grammar, and judge what came of it."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "toolturn.cli", "ask", "--json", question.text],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    try:
        document = json.loads(done.stdout)
    except ValueError:
        return Outcome(question, False, False, False, seconds, done.stderr.strip())
    ran = [
        Ran(r["call"]["name"], r["call"]["arguments"], r["message"]["content"], r["status"])
        for r in document["tool_calls"]
    ]
    return judged(question, ran, document.get("content", ""), document.get("message") or "", seconds)


def ask_by_react(question: Question) -> Outcome:
    """Ask one question in this process, through ReAct text, and judge what came of it."""
    import asyncio

    from toolturn import ChatMessage, ModelSettings, ToolLoopError, run_tool_loop
    from toolturn.dialects.react import ReActTools
    from toolturn.local.runtime import LocalModel
    from toolturn.local.weights import find
    from toolturn.toolboxes import TOOLBOXES, toolboxes

    model = ReActTools(LocalModel(find(None), settings=ModelSettings(temperature=0.0, max_tokens=256)))
    asked = [ChatMessage("user", question.text)]
    start = time.perf_counter()
    content = failure = ""
    try:
        turn = run_tool_loop(asked, toolboxes(TOOLBOXES), model, on_limit="answer", tool_errors="report", nudges=1)
        result = asyncio.run(turn)
        content, records = result.content, result.tool_calls
    except ToolLoopError as error:
        failure, records = str(error), error.tool_calls
    seconds = time.perf_counter() - start
    ran = [Ran(r.call.name, r.call.arguments, str(r.message.content), r.status) for r in records]
    return judged(question, ran, content, failure, seconds)


def judged(question: Question, ran: list[Ran], content: str, failure: str, seconds: float) -> Outcome:
    """Judge what came of a question."""
    said = " ".join(f"{r.tool}({r.arguments}) -> {r.result};" for r in ran) + f" {content or failure}"
    if question.tool is None:
        good = bool(content) and (question.value is None or question.value in content.lower())
        return Outcome(question, not ran, not ran, not ran and good, seconds, said)
    tool = bool(ran) and ran[0].tool == question.tool
    value = question.value or ""
    result = any(r.tool == question.tool and r.status == "ok" and holds(r.result, value) for r in ran)
    answer = result and (question.tool == "current_time" or holds(content, value))
    return Outcome(question, tool, result, answer, seconds, said)


def main() -> int:
    """Ask, print what went wrong and the table."""
    parser = argparse.ArgumentParser(description="Ask the embedded model questions with known results.")
    parser.add_argument("--set", choices=["first", "apart", "all"], default="first")
    parser.add_argument("--check", action="store_true", help="exit code 1 when the first set falls short")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--dialect", choices=["grammar", "react"], default="grammar", help="how the model calls tools")
    options = parser.parse_args()
    sets = {"first": FIRST, "apart": APART}
    wanted = sets if options.set == "all" else {options.set: sets[options.set]}
    table, short = {}, False
    for name, questions in wanted.items():
        outcomes = []
        for question in questions:
            outcome = ask_by_react(question) if options.dialect == "react" else ask(question)
            outcomes.append(outcome)
            good = outcome.tool and outcome.result and outcome.answer
            sys.stderr.write(f"{'ok  ' if good else 'MISS'} {outcome.seconds:5.1f} s  {question.text}\n")
            if not good:
                sys.stderr.write(f"              {outcome.said}\n")
        needing = [outcome for outcome in outcomes if outcome.question.tool]
        table[name] = {
            "questions": len(needing),
            "right_tool": sum(outcome.tool for outcome in needing),
            "right_result": sum(outcome.result for outcome in needing),
            "right_answer": sum(outcome.answer for outcome in needing),
            "without_tool": len(outcomes) - len(needing),
            "right_without": sum(outcome.answer for outcome in outcomes if not outcome.question.tool),
            "median_seconds": round(statistics.median(outcome.seconds for outcome in outcomes), 1),
        }
        short |= name == "first" and (
            table[name]["right_tool"] < RIGHT_TOOLS or table[name]["right_result"] < RIGHT_RESULTS
        )
    if options.json:
        print(json.dumps(table, indent=2))
    else:
        print("| set | right tool | right result | right answer | none needed, none called | median seconds |")
        print("|---|--:|--:|--:|--:|--:|")
        for name, row in table.items():
            of = f"of {row['questions']}"
            print(
                f"| {name} | {row['right_tool']} {of} | {row['right_result']} {of} | {row['right_answer']} {of} "
                f"| {row['right_without']} of {row['without_tool']} | {row['median_seconds']} |"
            )
    return 1 if options.check and short else 0


if __name__ == "__main__":
    sys.exit(main())
