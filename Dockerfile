# flowserver from this checkout. The image runs as its own user, and read-only (docker-compose.yml): data is in /data.
#   docker build --tag flowserver .
#   docker run --read-only --volume flowserver:/data --publish 127.0.0.1:8080:8080 flowserver
# To pin the base image: --build-arg PYTHON=python:3.13-slim@sha256:...
ARG PYTHON=python:3.13-slim
FROM ${PYTHON}
WORKDIR /app
COPY requirements.txt ./
RUN pip install --no-cache-dir --require-hashes --no-deps --requirement requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY migrations migrations
COPY flowserver flowserver
RUN pip install --no-cache-dir --no-index --no-deps --no-build-isolation . \
    && useradd --system --uid 10001 flowserver \
    && mkdir --mode 0700 /data \
    && chown flowserver /data
# By its number, which Kubernetes can see is not root.
USER 10001
WORKDIR /data
ENV FLOWSERVER_HOST=0.0.0.0 FLOWSERVER_DATABASE_URL=sqlite:////data/flowserver.db
EXPOSE 8080
ENTRYPOINT ["flowserver"]
CMD ["serve"]
