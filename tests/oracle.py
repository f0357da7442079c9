"""A broker that is asked by the names of APIs; another one's answers are compared with its own."""

import time

from kafkalite.wire.apis import APIS
from tests.raw_client import RawClient

API = {api.key.name: api for api in APIS.values()}
PATIENCE_S = 30


class Asked:
    """One broker, Apache Kafka's or this one."""

    def __init__(self, broker):
        self.broker = broker
        self.client = RawClient(broker)

    def ask(self, name, version, request):
        return self.client.ask(API[name], version, request)

    def wait_for(self, name, version, request, is_ready):
        deadline = time.monotonic() + PATIENCE_S
        while not is_ready(answer := self.ask(name, version, request)):
            assert time.monotonic() < deadline, f"{name}: {answer}"
            time.sleep(0.01)
        return answer
