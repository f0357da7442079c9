"""A broker with an HTTP port, asked as scripts ask it."""

import json
import urllib.error
import urllib.request


class Http:
    """Asks one address for JSON."""

    def __init__(self, url, **headers):
        self.url = url
        self.headers = headers

    def ask(self, method, path, body=None):
        """Return (status, JSON or text)."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text, kind = answer.status, answer.read(), answer.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            with error:
                status, text, kind = error.code, error.read(), error.headers["Content-Type"]
        return status, json.loads(text) if kind == "application/json" else text.decode()

    def get(self, path):
        """Return the JSON of an answer that must be none but a success."""
        status, body = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return body

    def write(self, method, path, body=None):
        """The same for what changes something."""
        status, answer = self.ask(method, path, {} if body is None else body)
        assert status < 300, (path, status, answer)
        return answer
