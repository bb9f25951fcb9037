module github.com/open-telemetry/sig-profiling/profcheck

go 1.25.0
