"""REST under /v1: resources as camelCase JSON, errors as problem+json, an OpenAPI document made from the code.

It only translates operations to HTTP; `operations` decides what is allowed and does the work.
"""
