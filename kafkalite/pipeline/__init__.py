"""Spark jobs over topics: archive them to Parquet, replay files into them, audit what they hold.

They work with any Spark master and against any Kafka. PySpark is the optional extra
``kafkalite[spark]``; nothing here imports it before a job is started.
"""
