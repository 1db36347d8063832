"""Order of a script for the shell: settings, documents, `main`, what it calls, and the functions in jq."""

from proxy.explain.programs import definitions, rows
from proxy.explain.programs.languages import JqPrinter
from proxy.explain.programs.layouts import MAPPING_NOTE, Layout, comments, grouped

MARKET_OPTIONS = ' --arg country "$COUNTRY" --arg currency "$CURRENCY"'  # of jq, in snippets/requests.sh


class CurlLayout(Layout):
    """A script for the shell, with curl and jq."""

    language = "jq"
    printer = JqPrinter()

    def program(self) -> str:
        documents, main, jq = self._documents(), self._main(), self._functions()
        shell = self._in_file_order(definitions.used("sh", [main]))
        settings = self._addresses()
        if any("$country" in source or "$currency" in source for source in (*documents, jq)):
            settings += f"\nCOUNTRY={self.text.client[0]}\nCURRENCY={self.text.client[1]}"
        else:  # lists depend on neither
            shell = [block.replace(MARKET_OPTIONS, "") for block in shell]
        v3 = "# The functions that make v3's response, in jq.\n" + _heredoc("V3", "JQ", jq)
        return "\n\n".join([self._head(), "set -eu", settings, *documents, main, *shell, v3, "main"]) + "\n"

    def _head(self) -> str:
        usage = [
            "Usage: NEXAR_CLIENT_ID=… NEXAR_CLIENT_SECRET=… sh this_file.sh",
            "It needs curl 7.76 and jq 1.6, or newer.",
        ]
        return "#!/bin/sh\n" + comments("#", [self.text.title, *usage, *self.text.notes])

    def _addresses(self) -> str:
        graphql_url, token_url, scope = map(_word, self.text.addresses)
        return (
            f"GRAPHQL_URL=${{NEXAR_GRAPHQL_URL:-{graphql_url}}}\n"
            f"TOKEN_URL=${{NEXAR_TOKEN_URL:-{token_url}}}\n"
            f"SCOPE={scope}"
        )

    def _main(self) -> str:
        """Return `main`: with a call for each operation where there are several, else the one for all flows."""
        name, shell = self.text.flow.main, definitions.of_language("sh")
        main_name = f"main_{name}" if f"main_{name}" in shell else "main_one"
        calls = [
            f'graphql "${each["query"].name.upper()}" "$VARIABLES_{number}"'
            for number, each in enumerate(self.text.flow.constants.get("OPERATIONS", []), 1)
        ]
        main = shell[main_name].replace(main_name, "main").replace("RESPONSE", f"response_{name}")
        return main.replace("EACH_OPERATION", " &&\n    ".join(calls))

    def _in_file_order(self, functions: dict[str, str]) -> list[str]:
        """Return functions of the shell in the order of their file, callers first."""
        known = list(definitions.of_language("sh"))
        return [functions[name] for name in sorted(functions, key=known.index)]

    def _documents(self) -> list[str]:
        """Return the documents and their variables; the latter as jq, which knows country and currency."""
        constants = self.text.flow.constants
        texts = []
        for name, value in constants.items():
            if name.startswith(("QUERY", "COUNT_QUERY")) and isinstance(value, str):
                texts.append(_heredoc(name, "GRAPHQL", value))
            elif name.endswith("VARIABLES"):
                texts.append(_heredoc(name, "JSON", self.printer.literal(value)))
        if "LIST" in constants:
            texts.append("VARIABLES='{}'")
        for number, each in enumerate(constants.get("OPERATIONS", []), 1):
            texts.append(_heredoc(f"VARIABLES_{number}", "JSON", self.printer.literal(each["variables"])))
        return texts

    def _functions(self) -> str:
        """Return the jq functions: callees first, because jq demands it."""
        before = self.used(self.mapping)
        *callees, entry = reversed(self.mapping)
        mapping = [*callees, f"# {MAPPING_NOTE}\n{entry}"]
        response = self.definition(f"response_{self.text.flow.main}")
        # Where matches may have to be counted, the shell asks for that first.
        entries = [response] if self.text.flow.main != "match_number" else [self.definition("needs_count"), response]
        after = {name: block for name, block in self.used(entries).items() if name not in before}
        functions = [*before.values(), *mapping, *(each for each in after.values() if each not in entries), *entries]
        constants = grouped(
            f"def {name}: {self.printer.literal(value)};" for name, value in self.constants(functions).items()
        )
        tables = [
            f"# {rows.NOTES[name]}\ndef {name}: {self.table(table)};" for name, table in self.tables(functions).items()
        ]
        return "\n\n".join(filter(None, [constants, *tables, *functions]))


def _heredoc(name: str, mark: str, text: str) -> str:
    """Assign a text to a variable of the shell as it is: nothing in it is expanded."""
    return f"{name}=$(cat <<'{mark}'\n{text}\n{mark}\n)"


def _word(text: str) -> str:
    """Return a text between quotes of the shell."""
    return "'" + text.replace("'", "'\\''") + "'"
