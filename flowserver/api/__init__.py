"""The facades: RPC at `/` as the official SDKs speak it, REST under `/v1`. They translate; `operations` acts."""
