# lcm without torch, for a job that gates memory: docker build -t lcm . ; docs/howto/regress.md tells of gates.
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
ENV HNSWLIB_NO_NATIVE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY conf conf
COPY data data
COPY lcm lcm
COPY eval eval
COPY pipelines pipelines
RUN python -m venv /lcm && /lcm/bin/pip install --constraint constraints.txt .

FROM python:3.12-slim
COPY --from=build /lcm /lcm
# Whoever runs it, as with --user, may write where it works; a folder of the host is mounted at /work.
RUN install -d -m 1777 /var/cache/lcm /work
ENV PATH=/lcm/bin:$PATH LCM_CACHE_DIR=/var/cache/lcm HOME=/tmp USER=lcm
USER 1000
WORKDIR /work
ENTRYPOINT ["lcm"]
