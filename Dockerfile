# One image for every role: the command decides which. Build it with compose, or by hand:
#   docker build -t ackbox .
# Without a network at build time: put the wheels of ackbox and of all it needs into wheelhouse/
# (pip wheel -c constraints.txt -w wheelhouse .), and they alone are installed.
ARG PYTHON_IMAGE=python:3.13-slim
FROM ${PYTHON_IMAGE}

ENV PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python3 -m venv /opt/ackbox
ENV PATH=/opt/ackbox/bin:$PATH

WORKDIR /source
COPY . .
RUN if [ -d wheelhouse ]; then \
        pip install --no-index --find-links wheelhouse ackbox; \
    else \
        pip install -c constraints.txt .; \
    fi

# Tools and plans are mounted here, or copied by an image that is built on this one.
WORKDIR /app
ENV PYTHONPATH=/app
RUN useradd --system --uid 10001 ackbox && chown ackbox /app
USER ackbox

# SIGTERM to `ackbox` itself: it stops claiming and waits for what is on the wire.
STOPSIGNAL SIGTERM
ENTRYPOINT ["ackbox"]
CMD ["--help"]
