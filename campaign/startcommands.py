"""The commands that a campaign begins with: a small one to change, and help for an editor."""

from __future__ import annotations

from pathlib import Path

import click

from campaign.clibase import USAGE, fail, named_errors, print_json
from campaign.helppage import Page
from campaign.outlet import say


@click.command(cls=Page)
@named_errors
def schema() -> None:
    """Print the JSON Schema of a campaign's YAML file, for editors.

    An editor that knows YAML's language server completes and checks the keys of a file whose
    first line is: # yaml-language-server: $schema=campaign.schema.json
    """
    from campaign.reference import json_schema

    print_json(json_schema())


@click.command(cls=Page)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@named_errors
def init(directory: Path) -> None:
    """Write a small commented campaign that runs as it stands.

    A campaign.yaml, the functions it names in model.py, and the schema for editors. Nothing that
    is there is overwritten.
    """
    from campaign.scaffold import ScaffoldError, init as scaffold

    try:
        written = scaffold(directory)
    except ScaffoldError as error:
        fail(str(error), USAGE)
    for path in written:
        say(f"wrote {path}")
    say(f"run it with: simgate run {directory}")
