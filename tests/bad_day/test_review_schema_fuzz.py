"""Requests drawn from the schema of the review server: valid ones succeed, invalid ones are rejected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.bad_day.fuzzing import ANYTHING, budget, fits
from tests.bad_day.test_review_api_fuzz import HOST, TOKEN, Ask, FuzzedServer, as_json

from justright.review.server import make_app

Schema = dict[str, Any]


class DescribedServer(FuzzedServer):
    """A server with what it says of every address: method, path, and the operation."""

    def __init__(self, path):
        super().__init__(path)
        document = make_app(self.start_anew()).openapi()
        self.operations = [
            (method.upper(), address, whole(operation, document))
            for address, methods in document["paths"].items()
            for method, operation in methods.items()
        ]


def whole(schema: Any, document: Schema) -> Any:
    """The schema with what it refers to in its place."""
    if isinstance(schema, list):
        return [whole(each, document) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return whole(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    return {name: whole(each, document) for name, each in schema.items() if name != "discriminator"}


def breaks(schema: Schema) -> list[Any]:
    """Values that a schema does not allow."""
    found: list[Any] = []
    for each in schema.get("anyOf", [schema]):
        match each:
            case {"type": "integer"}:
                found += ["x", "", "1.5", "1e3", "\u0661x", "9" * 5000]
                found += [each["minimum"] - 1] if "minimum" in each else []
                found += [each["maximum"] + 1] if "maximum" in each else []
                found += [each["exclusiveMaximum"]] if "exclusiveMaximum" in each else []
            case {"enum": _} | {"const": _}:
                found += ["nonsense", "", "LARGEST"]
            case {"maxLength": longest}:
                found += ["a" * (longest + 1)]
            case {"pattern": _}:
                found += ["1,,2", "a", "-1"]
    return found if "anyOf" not in schema else [value for value in found if value in ("nonsense", "1.5")]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[DescribedServer]:
    server = DescribedServer(tmp_path_factory.mktemp("described") / "run")
    yield server
    server.stop()


def drawn_request(data: st.DataObject, method: str, address: str, operation: Schema) -> tuple[Ask, bool]:
    """A request, and whether the schema allows it."""
    parameters = operation.get("parameters", [])
    values = {each["name"]: data.draw(fits(each["schema"])) for each in parameters
              if each.get("required") or data.draw(st.booleans())}  # fmt: skip
    broken = [each for each in parameters if breaks(each["schema"])]
    is_allowed = not broken or data.draw(st.booleans())
    if not is_allowed:
        wrong = data.draw(st.sampled_from(broken))
        values[wrong["name"]] = data.draw(st.sampled_from(breaks(wrong["schema"])))
    path, query = address, {}
    for each in parameters:
        if each["name"] in values and each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", str(values[each["name"]]))
        elif each["name"] in values:
            query[each["name"]] = str(values[each["name"]]).encode("utf-8", "replace")
    body = b""
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        value = data.draw(fits(schema))
        is_allowed = data.draw(st.booleans())
        if not is_allowed:
            value |= data.draw(st.fixed_dictionaries({"extra": ANYTHING}))
        body = as_json(value)
    headers = [(b"host", HOST.encode()), (b"content-type", b"application/json")]
    return Ask(method, f"/{TOKEN}{path}", urlencode(query, quote_via=quote).encode(), headers, body), is_allowed


@given(data=st.data())
@budget(60)
def test_server_follows_its_schema(server, data):
    method, address, operation = data.draw(st.sampled_from(server.operations))
    ask, is_allowed = drawn_request(data, method, address, operation)
    status, answer = server.answer(ask)
    event(f"{method} {address} {'allowed' if is_allowed else 'forbidden'} {status}")
    assert status in ((200, 404, 409, 422) if is_allowed else (404, 422))
    if status != 200:
        assert {"error", "detail"} & json.loads(answer).keys()  # the framework has words of its own


def test_schema_has_every_route(server):
    addresses = {(method, address) for method, address, _ in server.operations}
    assert addresses >= {
        ("POST", "/act"),
        ("POST", "/export"),
        ("GET", "/clusters/{cluster}/images"),
        ("GET", "/status"),
    }
    limits = [each["schema"] for _, _, operation in server.operations for each in operation.get("parameters", [])]
    assert sum(bool(breaks(schema)) for schema in limits) > 10
