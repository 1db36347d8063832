"""The page of the settings: what each accepts and its default from proxy/config, what it is for from here."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from proxy import config
from proxy.config import loader

HEAD = """# Settings

For operators: every setting, what it accepts, and what it is for. The configuration is one YAML file; `v3bridge init`
writes one for your Nexar account. It has only what differs from the defaults:

```yaml
upstream: nexar
applications:
  shop:
    client_id: env:NEXAR_CLIENT_ID
    client_secret: file:nexar-secret
    plan: evaluation
    apikeys: ["the-key-your-programs-send"]
```

`v3bridge config --config our.yaml` prints what the file sets; with `--all` every setting, and where its value comes
from. Without `--config` a command uses the shipped [config.yaml](../config.yaml), which runs on the embedded sandbox.

`NAME` is a name of your own. A setting without a default is off unless you set it.
"""
TABLE = "| setting | accepts | for |\n|---|---|---|\n"
SECTIONS = {
    "Applications": "applications",
    "API keys": "applications.NAME.apikeys",
    "Store": "store",
    "Clients' port": "listen",
    "Operators' port": "admin",
    "Nexar": "upstream",
    "Other settings": "",
}
MEANINGS = {
    "applications": "applications at Nexar; letters, digits, `-`, `_` and `.`",
    "applications.NAME.apikeys": "the keys that your programs send; a key belongs to one application",
    "applications.NAME.apikeys.key": "the key itself",
    "applications.NAME.apikeys.name": "its name in usage, metrics and logs; by default its position: 1, 2, …",
    "applications.NAME.apikeys.parts": "a [limit](costs.md#limits) of its own in the application's period",
    "applications.NAME.apikeys.rate": "requests a second of this key, instead of the application's",
    "applications.NAME.apikeys.sunset.date": "as for the application, which it replaces",
    "applications.NAME.apikeys.sunset.link": "likewise",
    "applications.NAME.apikeys.expires": "the last day of this key, in UTC ([rotate a key](run.md#rotate-an-api-key))",
    "applications.NAME.client_id": "the application's id at Nexar; the sandbox needs none",
    "applications.NAME.client_secret": "its secret",
    "applications.NAME.country": "the country whose offers come first",
    "applications.NAME.currency": "the currency that prices are converted to",
    "applications.NAME.plan": "what you have bought; it sets `parts`, `period` and `features` ([plans](costs.md#plans))",
    "applications.NAME.features": "what your plan includes; `unknown` finds it out from responses",
    "applications.NAME.parts": "the limit of your plan: nothing is sent that might exceed it",
    "applications.NAME.period": "whether the limit is for a month (UTC) or for ever",
    "applications.NAME.rate": "requests a second of each of its API keys",
    "applications.NAME.sunset.date": "the last day of v3, in UTC ([the end](run.md#end-v3))",
    "applications.NAME.sunset.link": "a page that says how to go on",
    "store": "where usage, results and tokens are kept ([below](#where-the-store-is))",
    "store_without_tls": "allow a Redis on another machine without TLS; who reads the network reads tokens",
    "listen.host": "the address for clients; `0.0.0.0` is every network of this machine",
    "listen.port": "its port; a socket of systemd replaces both",
    "listen.workers": "processes on this port, about one a core",
    "listen.connections": "open connections of a worker; beyond them only health checks get a response",
    "listen.failed_auth_per_minute": "wrong keys of one address, in each worker; then it gets a 429",
    "listen.trusted_proxies": "servers in front, whose `X-Forwarded-For` names the client's address",
    "listen.sheet": "also serve `/sheet`, [a page that fills parts lists](parts-list.md#fill-a-list-in-a-browser)",
    "admin.host": "the address for operators; `admin: false` closes the port",
    "admin.port": "its port",
    "admin.token": "the token that `/status` needs; without one, only this machine sees it",
    "upstream.graphql_url": "Nexar's GraphQL API",
    "upstream.token_url": "Nexar's token endpoint",
    "upstream.site": "the catalog: Nexar's `octopartUrl` becomes v3's `octopart_url`",
    "upstream.total_seconds": "time for a response of Nexar and its retry; then the client gets a 503",
    "upstream.proxy": "an outgoing proxy; `HTTPS_PROXY` is not read",
    "upstream.connect_to": "another host to connect to, where [`api.nexar.com` is this proxy](connect.md#fixed-hosts)",
    "upstream": "the embedded sandbox, Nexar, or what differs from Nexar",
    "uids": "[uids that your programs have stored](connect.md#stored-uids)",
    "translation.single_query": "the GraphQL query for a single part number ([why](costs.md#one-query))",
    "cache.bytes": "room for results in the store; the oldest make way",
    "log.level": "the lowest level that is written",
    "log.format": "for people, or for programs",
}
"""What each setting is for, by its name in the file."""

TAIL = """
## What a reload changes

A [reload](run.md#change-the-configuration) applies every setting but these, which need a restart: `listen.host`,
`listen.port`, `listen.workers`, `admin.host`, `admin.port`, `admin: false`, `store`, and `upstream` from or to
`sandbox`.

## Secrets

Take secrets from the environment (`env:NAME`) or from a file (`file:PATH`, from the folder of the configuration; blanks
around it are removed). A reload reads files again; the environment is that of the start. If the configuration itself
holds a secret, give it mode 0600: otherwise the log warns with `exposed secrets found`.

An API key may stand in the file as its digest, so that nobody can read it there:

```sh
printf %s 'the-key' | sha256sum
```

```yaml
applications:
  demo:
    apikeys:
      - "sha256:ad44dc8e51cfbfa55e81ddbb626b466241069045066846e7e4cd096131505290"
      - {key: "another-key", name: erp, parts: 500}
```

v3's keys had eight hex digits, which can be guessed. On an open network give your programs long random keys, and
replace the public `EXAMPLE_KEY`.

## Where the store is

| `store` | use it for |
|---|---|
| `sqlite` | one machine: a file with the name of the configuration, in `$STATE_DIRECTORY` (systemd sets it), else beside it |
| `sqlite:PATH` | the same in another place, from the folder of the configuration |
| `redis://…`, `rediss://…`, `unix://…` | several machines; `pip install '.[redis]'`, and keep their clocks synchronized |
| `memory:` | a trial; everything is lost at the end |

Only its owner can read the file. Redis must not forget: it needs `appendonly yes` and `maxmemory-policy noeviction`, or
v3bridge does not start. On another machine it needs TLS (`rediss://`), because a token lets its holder spend your
parts. A certificate of your own authority goes into the address:

```text
store: rediss://v3bridge:PASSWORD@redis.internal:6380/0?ssl_ca_certs=/etc/v3bridge/redis-ca.pem
```

Take the address from the environment if it holds a password: `store: env:V3BRIDGE_STORE`. With `upstream: sandbox`
nothing is stored. Authorities that your system trusts, or that `SSL_CERT_FILE` names, are trusted for Nexar, too.

## Behind a proxy

All clients have the proxy's address, unless you trust its `X-Forwarded-For`. The client is then the last address in it
that is no trusted proxy. Trust only proxies that do not pass on a client's own header:

```yaml
applications: {demo: {apikeys: ["EXAMPLE_KEY"]}}
listen:
  trusted_proxies: ["10.0.0.5", "2001:db8:5::/48"]
```

An address that sends too many wrong keys gets a 429. Keys that it used in the last ten minutes keep working, so it does
not lock out others behind it.

## Mistakes

A mistake stops the start with exit code 2. All mistakes are printed at once, with file, line, column and setting:

```yaml
applications: {demo: {apikeys: ["EXAMPLE_KEY"]}}
listen:
  prot: 9000
```

```text
v3bridge: config.yaml:3:3: listen.prot: unknown key; did you mean port? Known here: host, port, workers, …
```
"""


class Setting(NamedTuple):
    """A setting, what it accepts, and its default."""

    name: str
    accepts: str


def settings(kind: type[config.Settings], prefix: str = "") -> Iterator[Setting]:
    """Yield every setting of a block and of the blocks in it."""
    for field in msgspec.structs.fields(kind):
        block, default = loader.block_of(field.type), field.default
        accepts = loader.accepted(kind, field.name)
        if block is None or not (accepts.startswith("a block of ") or isinstance(default, config.Settings)):
            shown = default.shown if isinstance(default, config.StoreUrl) else str(default)
            ends = {"NODEFAULT": "; required", "None": "", "()": "", "False": "; default `false`"}
            yield Setting(prefix + field.name, accepts + ends.get(shown, f"; default `{shown}`"))
        if block is not None:
            yield from settings(block, f"{prefix}{field.name}.{'NAME.' if field.name == 'applications' else ''}")


def page() -> str:
    """Return the page."""
    rows, every = dict.fromkeys(SECTIONS, ""), list(settings(config.Config))
    if gone := MEANINGS.keys() - {each.name for each in every}:
        raise ValueError(f"no such settings: {gone}")
    for name, accepts in every:
        inside = [title for title, prefix in SECTIONS.items() if name.startswith(prefix)]
        title = max(inside, key=lambda each: len(SECTIONS[each]))
        rows[title] += f"| `{name}` | {accepts} | {MEANINGS[name]} |\n"
    return HEAD + "".join(f"\n## {title}\n\n{TABLE}{text}" for title, text in rows.items()) + TAIL
