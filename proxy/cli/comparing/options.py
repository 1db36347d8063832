"""The options that `compare` and `record` have in common, with the words of their help."""

from pathlib import Path
from typing import Annotated

import typer

Old = Annotated[
    str | None,
    typer.Option(metavar="URL|FILE", help="The old service, or a file of its answers; sandbox: the embedded one."),
]
New = Annotated[str | None, typer.Option(metavar="URL", help="The new service, running.")]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Instead of --new: start the service of this configuration here."),
]
Requests = Annotated[Path | None, typer.Option(metavar="FILE", help="What people asked: a log, HAR, URLs, parts, …")]
Kind = Annotated[str | None, typer.Option(help="What the file of requests is, where that is not clear.")]
Column = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=NAME", help="A column of a list of parts: mpn=, sku=, manufacturer= or seller=NAME."),
]
Rules = Annotated[Path | None, typer.Option(metavar="FILE", help="Rules, keys and thresholds; the shipped if omitted.")]
Sample = Annotated[int | None, typer.Option(min=1, metavar="N", help="Ask N calls at most, of all sorts.")]
Seed = Annotated[int, typer.Option(help="The same sample in the same order for the same seed.")]
Budget = Annotated[int | None, typer.Option(min=0, metavar="PARTS", help="Parts that the new side may cost at most.")]
Yes = Annotated[bool, typer.Option("--yes", help="Ask no question before parts are spent.")]
OldKey = Annotated[
    str | None, typer.Option(metavar="env:NAME|file:PATH", help="The apikey for the old side, of every client.")
]
NewKey = Annotated[
    str | None, typer.Option(metavar="env:NAME|file:PATH", help="The apikey for the new side, of every client.")
]
OldRate = Annotated[
    float | None, typer.Option(min=0, help="Calls a second at the old side; 3 if omitted, as v3 had it; 0: no limit.")
]
NewRate = Annotated[float, typer.Option(min=0, help="Calls a second at the new side; 0: no limit.")]
OldAtOnce = Annotated[int, typer.Option(min=1, max=256, help="Calls under way at the old side.")]
NewAtOnce = Annotated[int, typer.Option(min=1, max=256, help="Calls under way at the new side.")]
Timeout = Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds for a whole answer.")]
Replay = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Map what was recorded again, and compare that. Costs no parts.")
]
Record = Annotated[Path | None, typer.Option(metavar="FILE", help="Record all answers, without keys.")]
Progress = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Where the run notes what it has done; else in the state folder.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin anew, whatever was noted before.")]
Shadow = Annotated[bool, typer.Option("--shadow", help="Ask nobody: show what a shadow has gathered.")]
FailOn = Annotated[
    str | None, typer.Option(metavar="LIST", help="What fails the run, such as missing-part,price>1%; see the docs.")
]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page; - is the output.")]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is the output.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown; - is the output.")]
Junit = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JUnit XML; - is the output.")]
HiddenBaseline = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Fail where a rule hides more than in the run that saved this file."),
]
SaveHidden = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Save how much each rule hid, for --hidden-baseline.")
]
LogLevel = Annotated[str, typer.Option(help="What is logged on standard error: debug, info, warning or error.")]
Output = Annotated[
    Path, typer.Option("--output", metavar="FILE", help="The recording; one that was interrupted goes on.")
]
