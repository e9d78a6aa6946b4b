"""A plugin in Python, as small as one can be."""

import json

from wit_world.exports import Tools
from wit_world.imports.types import Content_Text, Hints, Output, Tool

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


class Tools(Tools):
    def list_tools(self):
        return [Tool("echo", None, "Give a text back.", json.dumps(SCHEMA), None, Hints(0))]

    def call_tool(self, name, arguments):
        return Output([Content_Text(json.loads(arguments)["text"])], None)
