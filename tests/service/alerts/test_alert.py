"""Tests of alerts as values: texts that chat services show."""

import json
import socket

from proxy.alerts import alert as alerts


def made(title: str, status: alerts.Status = "firing") -> alerts.Alert:
    return alerts.make("msg_1", "client.new", "info", title, {"title": title}, now=0, status=status)


def test_text_holds_no_mention_link_or_markup() -> None:
    hostile = "<!channel> @here <https://evil.example|click> [x](https://evil.example) `code` *bold*"
    alert = made(hostile)
    assert not set("<>@[]`*") & set(alert.text)
    assert (alert.title, alert.details["title"]) == (hostile, hostile)
    assert set(json.loads(alerts.encode(alert, "text"))) == {"text"}


def test_text_says_whether_it_is_over() -> None:
    assert made("A sentence.").text == f"v3bridge on {socket.gethostname()}: info: A sentence."
    assert made("A sentence.", "resolved").text == f"v3bridge on {socket.gethostname()}: resolved: A sentence."
