"""What looking at a broker costs: a scrape of 1,000 partitions, and a request that is counted.

python -m benchmarks.http
"""

import statistics
import time
import urllib.request

from kafkalite import Broker

SCRAPES = 10
PARTITIONS = 1_000
RECORDS = 5_000


def scrape_ms() -> float:
    """Return the median time of a scrape of a broker with 1,000 partitions."""
    times = []
    with Broker(http=True) as broker:
        for topic in range(10):
            broker.create_topic(f"topic-{topic}", partitions=PARTITIONS // 10)
        for _ in range(SCRAPES):
            began = time.perf_counter()
            urllib.request.urlopen(f"{broker.http_url}/metrics").read()
            times.append(time.perf_counter() - began)
            time.sleep(1.1)  # who asks sooner gets the same again
    return statistics.median(times[1:]) * 1_000


def produce_us(*, counted: bool) -> float:
    """Return the time of one Produce of one record, one after another, with metrics or without."""
    from kafkalite.client.cluster import Client
    from kafkalite.client.producer import Producer

    with Broker(http=counted) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("orders")
        producer = Producer(client, "orders")
        for phase in range(2):
            began = time.perf_counter()
            for _ in range(RECORDS):
                producer.send(b"x" * 100)
                producer.flush()
            if phase:
                return (time.perf_counter() - began) / RECORDS * 1e6
    raise AssertionError


def main() -> None:
    """Print a table."""
    print(f"scrape of {PARTITIONS} partitions        {scrape_ms():8.1f} ms")
    off, on = produce_us(counted=False), produce_us(counted=True)
    print(f"produce, nothing counted          {off:8.1f} us")
    print(f"produce, counted and kept         {on:8.1f} us  {100 * (on / off - 1):+.1f} %")


if __name__ == "__main__":
    main()
