"""The text of `/metrics`, with the counts of the database."""

from flowserver.operations.operations import Operations


async def metrics_with_counts(operations: Operations) -> str:
    """The metrics. On a busy machine the counts may take longer than a scrape waits; the next one then has them."""
    text = ""
    while "flowserver_database_up 1.0" not in text:
        text = (await operations.monitoring.metrics()).decode()
    return text
