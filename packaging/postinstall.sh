#!/bin/sh
# After an installation or upgrade by dpkg or rpm.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers otelcol-profiles.conf
elif ! getent passwd otelcol-profiles >/dev/null; then
	useradd --system --user-group --no-create-home --home-dir /var/lib/otelcol-profiles \
		--shell /usr/sbin/nologin otelcol-profiles
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart otelcol-profiles.service # not if it was not running
fi
