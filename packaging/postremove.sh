#!/bin/sh
# After a removal or upgrade. Only dpkg has a purge, which also deletes the profiles and the
# user. After a removal by rpm, both stay.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	# /var/lib/otelcol-profiles is a link to the other if systemd has created them.
	rm -rf /var/lib/otelcol-profiles /var/lib/private/otelcol-profiles
	if getent passwd otelcol-profiles >/dev/null; then
		userdel otelcol-profiles
	fi
	if getent group otelcol-profiles >/dev/null; then
		groupdel otelcol-profiles
	fi
fi
