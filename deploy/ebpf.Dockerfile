# The image of deploy/kubernetes/ebpf. `make build-ebpf` builds the program first:
#
#   make build-ebpf && docker build -f deploy/ebpf.Dockerfile -t otelcol-profiles-ebpf:0.1.0 bin
#
# It runs as root, which the kernel requires to load eBPF programs.
FROM gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab
USER 0:0
LABEL org.opencontainers.image.title="otelcol-profiles-ebpf" \
      org.opencontainers.image.description="OpenTelemetry Collector for profiles, with the eBPF profiler" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY otelcol-profiles-ebpf /usr/bin/
WORKDIR /var/lib/otelcol-profiles
ENTRYPOINT ["/usr/bin/otelcol-profiles-ebpf"]
