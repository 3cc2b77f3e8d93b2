"""The service's own HTTP API, version 2019-03-15: RPC style at `/`, as the official SDKs of all generations speak."""
