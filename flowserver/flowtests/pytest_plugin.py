"""The pytest plugin is `flowserver.cli.pytest_plugin`; environments that were installed before look for it here."""
