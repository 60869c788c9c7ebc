"""The MCP SDK for Python as a client of cotenant: over stdio and over HTTP, in both eras of the protocol.

usage: sdk.py COTENANT ROOT URL TOKEN

ROOT is served at URL with the profile `trusting`, as it is by `COTENANT mcp --root ROOT`. Says what failed, a line each,
and ends with `PASSED of ALL`; its exit status is 0 where they are equal.
"""

import asyncio
import os
import pathlib
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PIPELINED = 20
# The SDK's mode, and the revision that it comes to.
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


class Checks:
    """What was looked at in one session, and what of it was not as it should be."""

    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.all = 0

    def that(self, what, holds, seen=""):
        self.all += 1
        self.passed += bool(holds)
        if not holds:
            print(f"{self.name}: {what}: {str(seen)[:600]}")


def said(result):
    """The one text block of an answer."""
    [block] = result.content
    return block.text


async def session(checks, client, root, stem, revision):
    """One session from its first word to its last."""
    checks.that("the revision that was asked for is spoken", client.protocol_version == revision, client.protocol_version)
    checks.that("it says who it is", "cotenant" in str(client.server_info), client.server_info)
    checks.that("it says how it is to be used", client.instructions, client.instructions)
    names = {tool.name for tool in (await client.list_tools()).tools}
    wanted = {"read_file", "edit_file", "write_file", "search_files", "undo", "whoami"}
    checks.that("the tools are listed", wanted <= names, names)

    path = root / f"{stem}.txt"
    before = "".join(f"line {number} of {stem}\n" for number in range(PIPELINED))
    path.write_text(before)

    def on_disk():
        return path.read_text()

    edit = {"path": path.name, "old_text": f"line 3 of {stem}", "new_text": f"LINE THREE of {stem}"}
    unread = await client.call_tool("edit_file", edit | {"old_text": "no such text"})
    checks.that("a refusal is an error for the model", unread.is_error and said(unread)[:1].isupper(), unread)
    checks.that("a refusal says what to do next", "\nnext: " in said(unread), unread)
    checks.that("a refusal changes nothing", on_disk() == before, on_disk())

    read = await client.call_tool("read_file", {"path": path.name})
    checks.that("a file is read", not read.is_error and f"4|line 3 of {stem}" in said(read), read)
    edited = await client.call_tool("edit_file", edit)
    after = before.replace(edit["old_text"], edit["new_text"])
    checks.that("an edit lands", not edited.is_error and on_disk() == after, edited)
    undone = await client.call_tool("undo", {})
    checks.that("undo takes it back", not undone.is_error and on_disk() == before, undone)
    outside = await client.call_tool("read_file", {"path": "../outside.txt"})
    checks.that("nothing outside is read", outside.is_error and said(outside).startswith("PATH_OUTSIDE"), outside)

    calls = [
        client.call_tool(
            "edit_file",
            {"path": path.name, "old_text": f"line {number} of {stem}\n", "new_text": f"line {number}, edited\n"},
        )
        for number in range(PIPELINED)
    ]
    results = await asyncio.gather(*calls)
    failed = [said(result) for result in results if result.is_error]
    checks.that("of pipelined edits none is refused", not failed, failed)
    wanted = "".join(f"line {number}, edited\n" for number in range(PIPELINED))
    checks.that("of pipelined edits none is lost", on_disk() == wanted, on_disk())


async def over_stdio(checks, cotenant, root, mode, stem):
    arguments = ["mcp", "--root", str(root), "--profile", "trusting"]
    # The SDK hands down a few variables only; the daemon's places must be those of this run.
    server = StdioServerParameters(command=cotenant, args=arguments, env=dict(os.environ))
    async with Client(stdio_client(server), mode=mode) as client:
        await session(checks, client, root, stem, ERAS[mode])


async def over_http(checks, url, token, root, mode, stem):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            await session(checks, client, root, stem, ERAS[mode])


async def strangers(checks, url):
    """Without a token nobody comes in."""
    answers = set()

    async def note(response):
        answers.add(response.status_code)

    async with httpx2.AsyncClient(event_hooks={"response": [note]}) as http:
        try:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                checks.that("a stranger lists no tools", False, await client.list_tools())
        except Exception:
            checks.that("a stranger is turned away", answers == {401}, answers)


def told(error):
    """What an error says, with those that it consists of."""
    return " ".join([repr(error), *map(told, getattr(error, "exceptions", ()))])


async def main(cotenant, root, url, token):
    root = pathlib.Path(root)
    done = []
    for mode in ERAS:
        for way in ("stdio", "http"):
            checks = Checks(f"{way}, {mode}")
            done.append(checks)
            stem = f"{way}-{mode}"
            try:
                if way == "stdio":
                    await over_stdio(checks, cotenant, root, mode, stem)
                else:
                    await over_http(checks, url, token, root, mode, stem)
            except Exception as error:
                checks.that("the session goes on to its end", False, told(error))
    checks = Checks("http, no token")
    done.append(checks)
    await strangers(checks, url)
    passed, every = (sum(getattr(checks, what) for checks in done) for what in ("passed", "all"))
    print(f"{passed} of {every}")
    return passed != every


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
