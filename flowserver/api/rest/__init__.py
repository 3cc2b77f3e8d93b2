"""REST under /v1: resources as camelCase JSON, errors as problem+json, an OpenAPI document made from the code.

Spells the operations in HTTP and nothing more: what may be done, and how, is decided in `operations`.
"""
