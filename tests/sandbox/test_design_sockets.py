"""Subscriptions over graphql-transport-ws, by a client that others wrote and word by word."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import gql
import pytest
from gql.transport.aiohttp_websockets import AIOHTTPWebsocketsTransport
from gql.transport.exceptions import TransportQueryError
from sandbox.design_client import AURORA, NORTHWIND, DesignClient, StartDesignSandbox
from support import cases

from proxy.kit import clock

DEADLINE = 30
WATCH = """subscription($input: DesOnCommentUpdatedInput!) { desOnCommentUpdated(input: $input) {
  action data { commentAuthor commentText commentThreadId projectId documentName threadStatus } } }"""


async def first_thread(designer: DesignClient, url: str = AURORA, name: str = "Weather Station Mk2") -> dict[str, str]:
    """A thread of a project, as mutations name it."""
    project_id = (await designer.project("id", url, name))["id"]
    query = "query($p: ID!) { desCommentThreads(projectId: $p) { commentThreadId } }"
    (thread, *_) = (await designer.get(query, p=project_id))["desCommentThreads"]
    return {"entityId": project_id, "commentThreadId": thread["commentThreadId"]}


def watching(designer: DesignClient, url: str = AURORA) -> dict[str, Any]:
    return {"input": {"token": designer.token, "workspaceUrl": url}}


async def listening(designer: DesignClient, count: int = 1) -> None:
    """Wait until there are so many subscribers."""
    async with asyncio.timeout(DEADLINE):
        while designer.rest_calls().count("collaboration GET /events") < count:
            await asyncio.sleep(0.01)
    # A further call goes the same way, so the listener is there when it is answered.
    await designer.get("query($u: String!) { desWorkspaceTasks(workspaceUrl: $u) { totalCount } }", u=AURORA)


async def told(results: AsyncIterator[Any], count: int) -> list[Any]:
    async with asyncio.timeout(DEADLINE):
        return [(await anext(results))["desOnCommentUpdated"] for _ in range(count)]


async def test_a_third_party_client_receives_comment_events(designer: DesignClient) -> None:
    place = await first_thread(designer)
    elsewhere = await first_thread(designer, NORTHWIND, "Sensor Hub")
    transport = AIOHTTPWebsocketsTransport(
        url=designer.sandbox.graphql_url.replace("http", "ws", 1), init_payload={"token": designer.token}
    )
    async with gql.Client(transport=transport) as session:
        asked = gql.gql(WATCH)
        asked.variable_values = watching(designer)
        results = session.subscribe(asked)
        heard = asyncio.create_task(told(results, 3), name="listener")
        await listening(designer)
        await designer.change("desCreateComment", "commentId", **elsewhere, text="not for them")
        said = await designer.change("desCreateComment", "commentId", **place, text="First")
        comment = {**place, "commentId": said["commentId"]}
        await designer.change("desUpdateComment", "errors { message }", **comment, text="Second")
        await designer.change("desDeleteComment", "errors { message }", **comment)
        events = await heard
        await results.aclose()
    assert [one["action"] for one in events] == ["CommentAdded", "CommentUpdated", "CommentDeleted"]
    assert [one["data"]["commentText"] for one in events] == ["First", "Second", "Second"]
    assert {one["data"]["commentAuthor"] for one in events} == {"ada"}
    assert {one["data"]["projectId"] for one in events} == {place["entityId"]}


async def test_a_third_party_client_can_query_over_the_websocket(designer: DesignClient) -> None:
    transport = AIOHTTPWebsocketsTransport(
        url=designer.sandbox.graphql_url.replace("http", "ws", 1),
        init_payload={"Authorization": f"Bearer {designer.token}"},
    )
    async with gql.Client(transport=transport) as session:
        shown = await session.execute(gql.gql("{ desUserByAuth { userName } supManufacturers { id } }"))
        assert shown["desUserByAuth"] == {"userName": "ada"}
        with pytest.raises(TransportQueryError, match="does not exist on the type"):
            await session.execute(gql.gql("{ nothing }"))


async def opened(socket: Any, payload: dict[str, Any] | None = None) -> None:
    await socket.send_json({"type": "connection_init", **({} if payload is None else {"payload": payload})})
    assert await socket.receive_json(timeout=DEADLINE) == {"type": "connection_ack"}


def subscribe(id_: str, query: str, variables: Any = None) -> dict[str, Any]:
    return {"id": id_, "type": "subscribe", "payload": {"query": query, "variables": variables}}


async def test_the_token_may_be_in_the_input_alone(designer: DesignClient) -> None:
    place = await first_thread(designer)
    async with designer.socket() as socket:
        await opened(socket)
        await socket.send_json(subscribe("1", WATCH, watching(designer)))
        await listening(designer)
        await designer.change("desCreateComment", "commentId", **place, text="Hello")
        message = await socket.receive_json(timeout=DEADLINE)
        assert (message["id"], message["type"]) == ("1", "next")
        assert message["payload"]["data"]["desOnCommentUpdated"]["data"]["commentText"] == "Hello"
        assert "requestId" in message["payload"]["extensions"]
        await socket.send_json({"id": "1", "type": "complete"})
        await socket.send_json(subscribe("1", "{ desUserByAuth { userName } }"))
        refused = await socket.receive_json(timeout=DEADLINE)
        assert (refused["type"], refused["payload"][0]["extensions"]["code"]) == ("error", "AuthInvalidToken")


async def test_a_bad_token_or_workspace_ends_the_subscription_at_once(designer: DesignClient) -> None:
    async with designer.socket() as socket:
        await opened(socket, {"token": designer.token})
        await socket.send_json(subscribe("1", WATCH, {"input": {"token": "no", "workspaceUrl": AURORA}}))
        refused = await socket.receive_json(timeout=DEADLINE)
        assert (refused["id"], refused["type"]) == ("1", "error")
        await socket.send_json(subscribe("2", WATCH, watching(designer, "https://nowhere.example")))
        answer = await socket.receive_json(timeout=DEADLINE)
        assert answer["payload"]["errors"][0]["message"] == "there is no workspace https://nowhere.example"
        assert (await socket.receive_json(timeout=DEADLINE)) == {"id": "2", "type": "complete"}


async def test_pings_get_pongs_and_operations_run_concurrently(designer: DesignClient) -> None:
    async with designer.socket() as socket:
        await opened(socket, {"authorization": f"bearer {designer.token}"})
        await socket.send_json(subscribe("w", WATCH, watching(designer)))
        await socket.send_json(subscribe("q", "{ desUserByAuth { userName } }"))
        await socket.send_json({"type": "ping"})
        heard = [await socket.receive_json(timeout=DEADLINE) for _ in range(3)]
        assert {"type": "pong"} in heard
        assert {"id": "q", "type": "complete"} in heard


@cases.parametrize(
    "messages, code",
    ([{"type": "connection_init"}, {"type": "\U0001f600" * 60}], 4400),
)
async def test_a_protocol_violation_closes_the_socket(designer: DesignClient, messages: list[Any], code: int) -> None:
    async with designer.socket() as socket:
        for message in messages:
            await socket.send_json(message)
        async with asyncio.timeout(DEADLINE):
            async for _ in socket:
                pass
        assert socket.close_code == code


async def test_a_subscription_ends_with_its_token(designer: DesignClient, manual_clock: clock.ManualClock) -> None:
    place = await first_thread(designer)
    async with designer.socket() as socket:
        await opened(socket)
        await socket.send_json(subscribe("1", WATCH, watching(designer)))
        await listening(designer)
        manual_clock.advance(86_400)
        await designer.sign_in("grace")
        await designer.change("desCreateComment", "commentId", **place, text="Not for an old token")
        refused = await socket.receive_json(timeout=DEADLINE)
        assert (refused["type"], refused["payload"][0]["extensions"]["code"]) == ("error", "AuthExpiredToken")
        await socket.send_json(subscribe("1", "{ __typename }"))
        assert (await socket.receive_json(timeout=DEADLINE))["type"] == "next"


async def test_an_operation_id_is_unique_while_running(designer: DesignClient) -> None:
    async with designer.socket() as socket:
        await opened(socket, {"token": designer.token})
        for _ in range(2):
            await socket.send_json(subscribe("1", WATCH, watching(designer)))
        async with asyncio.timeout(DEADLINE):
            async for _ in socket:
                pass
        assert socket.close_code == 4409


async def test_another_subprotocol_is_rejected(designer: DesignClient) -> None:
    async with designer.socket(protocols=("graphql-ws",)) as socket:
        await socket.receive(timeout=DEADLINE)
        assert socket.close_code == 4406


async def test_a_subscription_by_post_is_rejected(designer: DesignClient) -> None:
    response = await designer.ask(WATCH, watching(designer))
    assert response.status == 400
    assert "graphql-transport-ws" in response.messages[0]


async def test_a_subscription_is_journalled_without_its_token(designer: DesignClient) -> None:
    async with designer.socket() as socket:
        await opened(socket)
        await socket.send_json(subscribe("1", WATCH, watching(designer)))
        await listening(designer)
    entry = next(one for one in designer.sandbox.journal.entries if one.fields == ("desOnCommentUpdated",))
    async with asyncio.timeout(DEADLINE):
        while not entry.whole:
            await asyncio.sleep(0.01)
    assert (entry.application, entry.status) == (designer.sandbox.default_application.application_id, 200)
    assert designer.token not in repr(designer.sandbox.journal.entries)


async def test_the_sandbox_stops_with_open_subscriptions(start_design: StartDesignSandbox) -> None:
    async with start_design() as designer:
        socket = await designer.session.ws_connect(designer.sandbox.graphql_url, protocols=("graphql-transport-ws",))
        await opened(socket)
        await socket.send_json(subscribe("1", WATCH, watching(designer)))
        await listening(designer)
