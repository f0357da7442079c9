"""The test suites of other clients, unchanged, against kafkalite and against Apache Kafka.

`python -m compat_tests.client_suites NAME [--broker apache]` runs one of them whole and keeps what
came of each test in `results/NAME.json`, from which docs/compatibility.md gets its list. A suite is
fetched when it is run and never kept here.
"""
