// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	"github.com/sassoftware/go-rpmutils"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tool skips a test if a program is missing.
func tool(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
}

// command runs a command that must succeed.
func command(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, arguments...).CombinedOutput()
	require.NoError(t, err, "%s %q\n%s", name, arguments, out)
	return string(out)
}

func TestDebContents(t *testing.T) {
	_, version := dist(t)
	tool(t, "dpkg-deb")
	for _, architecture := range []string{"amd64", "arm64"} {
		name := packageFile(t, "deb", architecture)
		fields := command(t, "dpkg-deb", "--field", name)
		upstream, _, _ := strings.Cut(version, "-")
		for _, want := range []string{"Package: otelcol-profiles\n", "Version: " + upstream, "Architecture: " + architecture + "\n", "Recommends: ca-certificates\n"} {
			assert.Contains(t, fields, want, "%s has no %q:\n%s", name, want, fields)
		}
		assert.True(t, slices.Equal(strings.Fields(command(t, "dpkg-deb", "--info", name, "conffiles")), configFiles), "conffiles of %s", name)
		plain, err := exec.CommandContext(t.Context(), "dpkg-deb", "--fsys-tarfile", name).Output()
		require.NoError(t, err)
		files := map[string]file{}
		for archive := tar.NewReader(bytes.NewReader(plain)); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			assert.Equal(t, [2]int{}, [2]int{header.Uid, header.Gid}, "%s: owner of %s", name, header.Name)
			if header.Typeflag != tar.TypeReg {
				continue
			}
			content, err := io.ReadAll(archive)
			require.NoError(t, err)
			files["/"+strings.TrimLeft(header.Name, "./")] = file{header.FileInfo().Mode(), content}
		}
		checkPackaged(t, name, architecture, files)
	}
}

func TestRPMContents(t *testing.T) {
	_, version := dist(t)
	for architecture, of := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		name := packageFile(t, "rpm", architecture)
		rpm, err := rpmutils.ReadRpm(bytes.NewReader(read(t, name)))
		require.NoError(t, err, "%s", name)
		upstream, _, _ := strings.Cut(version, "-")
		for tag, want := range map[int]string{
			rpmutils.NAME: "otelcol-profiles", rpmutils.ARCH: of, rpmutils.LICENSE: "Apache-2.0",
			rpmutils.POSTIN: "systemd-sysusers", rpmutils.PREUN: "systemctl disable", rpmutils.POSTUN: "daemon-reload", rpmutils.VERSION: upstream,
		} {
			got, err := rpm.Header.GetString(tag)
			require.NoError(t, err)
			assert.Contains(t, got, want, "%s: tag %d", name, tag)
		}
		infos, err := rpm.Header.GetFiles()
		require.NoError(t, err)
		const config, noReplace = 1 << 0, 1 << 4
		for _, info := range infos {
			assert.Equal(t, "root:root", info.UserName()+":"+info.GroupName(), "%s: owner of %s", name, info.Name())
			want := 0
			if slices.Contains(configFiles, info.Name()) {
				want = config | noReplace
			}
			assert.Equal(t, want, info.Flags()&(config|noReplace), "%s: %s has the flags %#x", name, info.Name(), info.Flags())
		}
		payload, err := rpm.PayloadReaderExtended()
		require.NoError(t, err)
		files := map[string]file{}
		for {
			info, err := payload.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if info.Mode()&0o170000 != 0o100000 {
				continue
			}
			data, err := io.ReadAll(payload)
			require.NoError(t, err)
			files[info.Name()] = file{fs.FileMode(info.Mode() & 0o777), data}
		}
		checkPackaged(t, name, architecture, files)
	}
}

// serve starts the command $1 of the unit as its user, in a network of its own, with the default
// ports. It pushes the profile $2 and stops the program.
const serve = `
set -eu
ip link set lo up
cd /var/lib/otelcol-profiles
setpriv --reuid=otelcol-profiles --regid=otelcol-profiles --clear-groups --no-new-privs \
	env --ignore-environment DATA_DIR=/var/lib/otelcol-profiles HOSTNAME=localhost $1 &
pid=$!
trap 'kill -9 $pid 2>/dev/null || true' EXIT
curl --silent --fail --retry 300 --retry-all-errors --retry-delay 1 --retry-max-time 60 --output /dev/null localhost:13133
curl --silent --show-error --fail-with-body --data-binary @"$2" 'localhost:4040/v1/pprof?service.name=checkout'
kill $pid
wait $pid
`

// TestDebInstalls installs the package on this machine, runs the command of its unit, pushes a
// profile, reinstalls, removes and purges the package. Nothing stays.
func TestDebInstalls(t *testing.T) {
	dist(t)
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("dpkg needs root")
	}
	tool(t, "dpkg", "unshare", "setpriv", "ip", "curl")
	if exec.CommandContext(t.Context(), "dpkg", "--status", "otelcol-profiles").Run() == nil {
		t.Skip("otelcol-profiles is installed")
	}
	name := packageFile(t, "deb", runtime.GOARCH)
	const state = "/var/lib/otelcol-profiles"
	if _, err := os.Stat(state); err == nil {
		t.Skipf("%s exists", state)
	}
	t.Cleanup(func() {
		_ = exec.Command("dpkg", "--purge", "otelcol-profiles").Run() // after a failure
	})
	command(t, "dpkg", "--install", name)
	for path := range packaged {
		assert.FileExists(t, path)
	}
	command(t, "getent", "passwd", "otelcol-profiles")

	unit := string(read(t, "/usr/lib/systemd/system/otelcol-profiles.service"))
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)
	require.NotNil(t, start, unit)
	require.Contains(t, unit, "\nUser=otelcol-profiles\n")
	require.Contains(t, unit, "\nStateDirectory=otelcol-profiles\n")
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		command(t, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "/usr/lib/systemd/system/otelcol-profiles.service")
	}
	command(t, "install", "--directory", "--owner=otelcol-profiles", "--group=otelcol-profiles", "--mode=0700", state) // as systemd does
	profile := filepath.Join(t.TempDir(), "heap.pb.gz")
	writeHeapProfile(t, profile)
	command(t, "unshare", "--net", "bash", "-c", serve, "bash", start[1], profile)
	assert.Contains(t, command(t, "otelprof", "ls", filepath.Join(state, "profiles")), "checkout", "the files have no service checkout")

	// A changed configuration survives a reinstallation and a removal, not a purge.
	const changed = "# changed\n"
	config, err := os.OpenFile(configFiles[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = config.WriteString(changed)
	require.NoError(t, errors.Join(err, config.Close()))
	command(t, "dpkg", "--install", name)
	command(t, "dpkg", "--remove", "otelcol-profiles")
	assert.True(t, bytes.HasSuffix(read(t, configFiles[0]), []byte(changed)), "the changed configuration is lost")
	assert.DirExists(t, filepath.Join(state, "profiles"))
	assert.NoFileExists(t, "/usr/bin/otelcol-profiles")
	command(t, "dpkg", "--purge", "otelcol-profiles")
	for _, path := range append([]string{state, "/var/lib/private/otelcol-profiles", "/etc/otelcol-profiles", "/usr/share/doc/otelcol-profiles"}, configFiles...) {
		_, err := os.Lstat(path)
		assert.ErrorIs(t, err, fs.ErrNotExist, "after a purge")
	}
	for _, database := range []string{"passwd", "group"} {
		assert.Error(t, exec.CommandContext(t.Context(), "getent", database, "otelcol-profiles").Run(), "after a purge")
	}
}

func writeHeapProfile(t *testing.T, name string) {
	t.Helper()
	heap, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, errors.Join(pprof.WriteHeapProfile(heap), heap.Close()))
}

// overlay runs the script $2 in a root directory that has the files of this machine, and keeps all
// changes below $1. The directory $1/root/input is a copy of $1/input.
const overlay = `
set -eu
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
cp -r "$1/input" "$1/root/input"
exec chroot "$1/root" bash -euxo pipefail -c "$2" bash "$3"
`

// installRPM is the script for the rpm. The script $1 serves.
const installRPM = `
debian=$(test ! -e /etc/debian_version || echo --force-debian) # where rpm refuses otherwise
rpm() { command rpm --dbpath=/input/rpmdb $debian "$@" 2>&1; }
rpm --install --nodeps /input/package.rpm
test -z "$(rpm --verify --nodeps otelcol-profiles)" # sizes, modes, owners, contents
getent passwd otelcol-profiles
state=/var/lib/otelcol-profiles config=/etc/otelcol-profiles/config.yaml
unit=/usr/lib/systemd/system/otelcol-profiles.service
install --directory --owner=otelcol-profiles --group=otelcol-profiles --mode=0700 $state # as systemd does
bash -c "$1" bash "$(sed -n s/^ExecStart=//p $unit)" /input/heap.pb.gz
otelprof ls $state/profiles | grep checkout

# A changed configuration survives a reinstallation, and under another name a removal.
echo '# changed' >>$config
rpm --upgrade --nodeps --replacepkgs /input/package.rpm
tail -1 $config | grep '^# changed'
getent passwd otelcol-profiles
rpm --erase otelcol-profiles
tail -1 $config.rpmsave | grep '^# changed'
for removed in /usr/bin/otelcol-profiles /usr/bin/otelprof $unit $config /usr/lib/sysusers.d/otelcol-profiles.conf; do
	test ! -e $removed
done
ls $state/profiles/*
getent passwd otelcol-profiles # owns the profiles
`

// TestRPMInstalls installs the package in a root directory of its own, verifies its files, runs the
// command of its unit, pushes a profile, reinstalls and erases the package.
func TestRPMInstalls(t *testing.T) {
	dist(t)
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("rpm needs root")
	}
	tool(t, "rpm", "unshare", "chroot", "setpriv", "ip", "curl")
	directory := t.TempDir()
	for _, name := range []string{"upper", "work", "root", "input"} {
		require.NoError(t, os.Mkdir(filepath.Join(directory, name), 0o755))
	}
	require.NoError(t, copyFile(packageFile(t, "rpm", runtime.GOARCH), filepath.Join(directory, "input", "package.rpm")))
	writeHeapProfile(t, filepath.Join(directory, "input", "heap.pb.gz"))
	mount := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", `mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"`, "sh", directory)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("no overlay: %s", out)
	}
	command(t, "unshare", "--mount", "--net", "bash", "-c", overlay, "bash", directory, installRPM, serve)
}
