// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inNamespace, in the environment, says that this process has a network of its own.
const inNamespace = "E2E_IN_NAMESPACE"

// runPage is a page whose commands TestPages runs.
type runPage struct {
	path string
	// continues: the reader has run the commands of the page before it, in the same directory.
	continues bool
	// frame is a function that every flame graph and every list of functions shows.
	frame string
	// servers and flameGraphs count the commands of each kind. They show that the test
	// has found the commands.
	servers, flameGraphs int
}

var pages = []runPage{
	{path: "README.md", frame: "compress/flate", servers: 1, flameGraphs: 1},
	{path: "cmd/otelprof/README.md", continues: true, frame: "runtime", servers: 1, flameGraphs: 1},
	{path: "docs/sql.md", continues: true},
	{path: "cmd/otelprof/README.md", frame: "runtime", servers: 1, flameGraphs: 1},
	{path: "docs/operating.md"},
	{path: "docs/getting-started.md", frame: "compress/flate", servers: 3, flameGraphs: 1},
}

// TestPages runs each command of the pages as it is printed there, from the clone on, at
// the ports that are printed there. So that these ports are free, it runs in a network
// namespace of its own if the system allows that.
func TestPages(t *testing.T) {
	parallel(t)
	program(t)
	for _, tool := range []string{"bash", "git", "make", "curl", "zstd", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the pages need %s: %v", tool, err)
		}
	}
	if os.Getenv(inNamespace) == "" {
		if out, err := againInNamespace(t); err == nil || len(out) > 0 {
			if t.Logf("in a network namespace:\n%s", out); err != nil {
				t.Fatal(err)
			}
			return
		}
		for _, port := range []string{"4040", "4041", "4317", "4318", "6060", "8080", "8888", "13133", "8889", "13134"} {
			listener, err := net.Listen("tcp", "localhost:"+port)
			if err != nil {
				t.Skipf("no network namespace, and %v", err)
			}
			_ = listener.Close()
		}
	} else if err := loopbackUp(); err != nil {
		t.Fatal(err)
	}
	origin := cloneable(t)
	all, before := t, (*reader)(nil)
	for _, page := range pages {
		t.Run(page.path, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", page.path))
			require.NoError(t, err)
			r := newReader(all, origin, page.frame)
			switch {
			case page.continues:
				r.directory = before.directory
			case page.path != "README.md": // the others begin in the clone
				r.do(t, "git clone --quiet https://github.com/otelcol-profiles/otelcol-profiles")
				r.do(t, "cd otelcol-profiles")
			}
			before = r
			for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
				for _, command := range commands(block[1]) {
					r.do(t, command)
				}
			}
			r.interrupt(t)
			if r.flameGraphs != page.flameGraphs || r.servers != page.servers {
				t.Errorf("%d flame graphs and %d servers, want %d and %d", r.flameGraphs, r.servers, page.flameGraphs, page.servers)
			}
		})
	}
}

// TestCommandsOfPagesRun checks that pages mark no commands as those of a shell that TestPages does not run.
func TestCommandsOfPagesRun(t *testing.T) {
	out, err := exec.Command("git", "-C", "..", "grep", "-l", "^```sh", "--", "*.md").Output()
	require.NoError(t, err)
	for name := range strings.FieldsSeq(string(out)) {
		if !slices.ContainsFunc(pages, func(p runPage) bool { return p.path == name }) {
			t.Errorf("TestPages does not run %s: indent commands that need another machine", name)
		}
	}
}

// commands splits a block into commands: a line each, or all lines of a here document, of a
// loop, or that end in a backslash.
func commands(block string) (all []string) {
	var command strings.Builder
	end := "" // the last line of the command
	for line := range strings.Lines(block) {
		command.WriteString(line)
		switch {
		case line == end:
			end = ""
		case strings.Contains(line, "<<'EOF'"):
			end = "EOF\n"
		case strings.HasPrefix(line, "for "):
			end = "done\n"
		}
		if end == "" && !strings.HasSuffix(line, "\\\n") {
			all = append(all, strings.TrimSuffix(command.String(), "\n"))
			command.Reset()
		}
	}
	return all
}

// reader runs the commands of one page.
type reader struct {
	directory   string
	temporary   string // stands for /tmp
	environment []string
	frame       string
	service     string // that was pushed
	// running are the commands that keep their terminals, in the order of their start.
	running              []*exec.Cmd
	logs                 *logs
	servers, flameGraphs int
}

// cloneable returns a git repository made of the files that are here now, committed or
// not.
func cloneable(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	r := newReader(t, t.TempDir(), "")
	r.shell(t, "git -C '"+root+"' ls-files --cached --others --exclude-standard -z | tar -C '"+root+"' --null --files-from=- --ignore-failed-read -cf - | tar -xf - &&"+
		"git init --quiet && git add --all && git commit --quiet --message=all")
	return r.directory
}

// newReader gives the address that the README clones from to the repository at origin.
func newReader(t *testing.T, origin, frame string) *reader {
	t.Helper()
	// Variables that a make or a git around this test has set must not reach the commands.
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=") || strings.HasPrefix(variable, "GIT_")
	})
	return &reader{directory: t.TempDir(), temporary: t.TempDir(), frame: frame, logs: &logs{}, environment: append(environment,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=url."+origin+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/otelcol-profiles/otelcol-profiles",
		"GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=reader",
		"GIT_CONFIG_KEY_2=user.email", "GIT_CONFIG_VALUE_2=reader@localhost",
		"BROWSER=true", // the one that go tool pprof opens
	)}
}

var (
	server       = regexp.MustCompile(`^([A-Z_]+=\S+[\s\\]+)*(make run|go run /tmp/tutorial/|bin/otelcol-profiles( --|$))`)
	healthListen = regexp.MustCompile(`HEALTH_LISTEN=(\S+)`)
	browser      = regexp.MustCompile(`^(?:go tool pprof -http=(\S+)|bin/otelprof view .*--http (\S+))`)
	service      = regexp.MustCompile(`[?&]service\.name=(\w+)`)
	top          = regexp.MustCompile(`^((go tool pprof -top( -cum)?|bin/otelprof top) [^-]*|until bin/otelprof top .*)$`)
)

// do runs one command as the reader of the page does.
func (r *reader) do(t *testing.T, command string) {
	t.Helper()
	t.Log("$ " + command)
	here := strings.ReplaceAll(command, "/tmp/", r.temporary+"/")
	switch {
	case strings.HasPrefix(command, "cd "):
		r.directory = filepath.Join(r.directory, strings.TrimPrefix(command, "cd "))
		// Go recognizes by its build ID that this program is up to date, and does not
		// link it again.
		r.shell(t, "mkdir -p bin && cp '"+program(t)+"' '"+otelprofProgram(t)+"' bin/")
	case server.MatchString(command):
		r.start(t, here)
		ready := "http://localhost:13133"
		if match := healthListen.FindStringSubmatch(command); match != nil {
			ready = "http://" + match[1]
		} else if strings.Contains(command, "go run") {
			ready = "http://localhost:6060/debug/pprof/"
		}
		r.await(t, ready, "")
		r.servers++
	case browser.MatchString(command):
		r.awaitFiles(t, here)
		r.start(t, here)
		if match := browser.FindStringSubmatch(command); match[1] != "" {
			r.await(t, "http://"+match[1]+"/ui/flamegraph", r.frame)
		} else {
			r.await(t, "http://"+match[2]+"/", r.frame)
		}
		r.flameGraphs++
		last := len(r.running) - 1
		interrupt(t, r.running[last])
		r.running = r.running[:last]
	default:
		if pushed := service.FindStringSubmatch(command); pushed != nil {
			r.service = pushed[1]
		}
		r.awaitFiles(t, here)
		if strings.HasPrefix(command, "bin/otelprof ls ") && len(r.running) > 0 {
			r.awaitProfiles(t, here)
		}
		out := r.shell(t, here)
		if top.MatchString(command) && !strings.Contains(out, r.frame) {
			t.Errorf("%s does not show %s:\n%s", command, r.frame, out)
		}
		if strings.Contains(command, "ls --service otelcol-profiles") && !regexp.MustCompile(`(?m)^otelcol-profiles +goroutine +goroutine +[1-9]\d* +now, of \d+ process(es)? +\d+ s ago `).MatchString(out) {
			t.Errorf("%s prints\n%s", command, out)
		}
	}
}

// awaitFiles waits until each pattern in a command that names profiles has a file, as a
// reader of the page does.
func (r *reader) awaitFiles(t *testing.T, command string) {
	t.Helper()
	for _, pattern := range regexp.MustCompile(`\S*/([a-z]+-)?\*[\w.]*`).FindAllString(command, -1) {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(r.directory, pattern)
		}
		require.Eventually(t, func() bool {
			found, err := filepath.Glob(pattern)
			return err != nil || len(found) > 0
		}, 2*patience, 100*time.Millisecond, "there is no %s\n%s", pattern, r.logs)
	}
}

// awaitProfiles waits until ls finds a snapshot of the Collector or another service, and the one that was pushed, as a
// reader of the page does.
func (r *reader) awaitProfiles(t *testing.T, command string) {
	t.Helper()
	require.Eventually(t, func() bool {
		out, err := r.bash(command).Output()
		return err == nil && strings.Contains(string(out), r.service) && (strings.Contains(string(out), "goroutine") || strings.Contains(command, "/tutorial/") || strings.Contains(command, "--type"))
	}, 2*patience, 100*time.Millisecond, "%s finds nothing\n%s", command, r.logs)
}

func (r *reader) bash(command string) *exec.Cmd {
	shell := exec.Command("bash", "-euo", "pipefail", "-c", command)
	shell.Dir, shell.Env = r.directory, r.environment
	return shell
}

// shell runs a command until it ends, and requires that it succeeds.
func (r *reader) shell(t *testing.T, command string) string {
	t.Helper()
	var out, errors bytes.Buffer
	shell := r.bash(command)
	shell.Stdout, shell.Stderr = &out, &errors
	require.NoError(t, shell.Run(), "%s\n%s%s\n%s", command, &out, &errors, r.logs)
	return out.String()
}

// start runs a command in a terminal of its own.
func (r *reader) start(t *testing.T, command string) {
	t.Helper()
	shell := r.bash(command)
	shell.Stdout, shell.Stderr = r.logs, r.logs
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, shell.Start())
	r.running = append(r.running, shell)
	t.Cleanup(func() {
		if shell.ProcessState == nil {
			_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) // an error means that it has ended
			_ = shell.Wait()
		}
	})
}

// interrupt presses Ctrl+C in all terminals, the newest first.
func (r *reader) interrupt(t *testing.T) {
	t.Helper()
	for _, shell := range slices.Backward(r.running) {
		interrupt(t, shell)
	}
	r.running = nil
}

func interrupt(t *testing.T, shell *exec.Cmd) {
	t.Helper()
	require.NoError(t, syscall.Kill(-shell.Process.Pid, syscall.SIGINT))
	_ = shell.Wait() // the error says that it was interrupted
}

// await asks a URL until it answers 200 with a body that contains text.
func (r *reader) await(t *testing.T, url, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err := ask(http.MethodGet, url, nil)
		return err == nil && got.status == http.StatusOK && strings.Contains(got.body, text)
	}, 2*patience, 100*time.Millisecond, "%s does not answer with %q\n%s", url, text, r.logs)
}
