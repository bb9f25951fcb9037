// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
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
)

// inNamespace, in the environment, says that this process has a network of its own.
const inNamespace = "E2E_IN_NAMESPACE"

// TestNewcomer does what the README tells a newcomer to do, from the clone on: each
// command of "Try it" and "Look at the result" as it is printed there, at the ports that
// are printed there. So that these are free it runs in a network of its own, where that
// is allowed.
func TestNewcomer(t *testing.T) {
	program(t)
	for _, tool := range []string{"bash", "git", "make", "curl", "zstd", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("a newcomer needs %s: %v", tool, err)
		}
	}
	if os.Getenv(inNamespace) == "" {
		if out, err := againInNamespace(t); err == nil || len(out) > 0 {
			if t.Logf("in a network of its own:\n%s", out); err != nil {
				t.Fatal(err)
			}
			return
		}
		for _, port := range []string{"4040", "8080", "8888", "13133", "55679"} {
			listener, err := net.Listen("tcp", "localhost:"+port)
			if err != nil {
				t.Skipf("no network of our own, and %v", err)
			}
			_ = listener.Close()
		}
	} else if err := loopbackUp(); err != nil {
		t.Fatal(err)
	}

	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := newNewcomer(t)
	defer n.interrupt(t)
	for _, section := range []string{"Try it", "Look at the result"} {
		_, text, ok := strings.Cut(string(readme), "\n## "+section+"\n")
		if !ok {
			t.Fatalf("the README has no section %q", section)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Fatalf("the section %q has no commands", section)
		}
		for _, block := range blocks {
			for command := range strings.Lines(block[1]) {
				n.do(t, strings.TrimSuffix(command, "\n"))
			}
		}
	}
	if n.flameGraphs != 1 || n.runs != 3 {
		t.Errorf("%d flame graphs and %d runs, want one and three", n.flameGraphs, n.runs)
	}
}

// newcomer is who reads the README.
type newcomer struct {
	directory   string
	environment []string
	// running is what holds up the first terminal.
	running           *exec.Cmd
	logs              *logs
	runs, flameGraphs int
}

// newNewcomer gives the address that the README clones from to a repository made of
// what is here now, committed or not.
func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	origin := filepath.Join(t.TempDir(), "origin")
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git" || name == "bin" || name == "profiles":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(origin, name), 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(origin, name), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	// What a make or a git around this test has set is not for those in it.
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=") || strings.HasPrefix(variable, "GIT_")
	})
	n := &newcomer{directory: origin, environment: append(environment,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=url."+origin+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/otelcol-profiles/otelcol-profiles",
		"GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=newcomer",
		"GIT_CONFIG_KEY_2=user.email", "GIT_CONFIG_VALUE_2=newcomer@localhost",
		"BROWSER=true", // the one that go tool pprof opens
	)}
	n.shell(t, "git init --quiet && git add --all && git commit --quiet --message=all")
	n.directory = t.TempDir()
	return n
}

// do does what stands on one line.
func (n *newcomer) do(t *testing.T, command string) {
	t.Helper()
	t.Log("$ " + command)
	switch {
	case strings.HasPrefix(command, "cd "):
		n.directory = filepath.Join(n.directory, strings.TrimPrefix(command, "cd "))
		// Go sees by its build ID whether this is what the sources make, and does
		// without linking it again if so.
		n.shell(t, "mkdir -p bin && cp '"+program(t)+"' bin/")
	case strings.HasPrefix(command, "make run"):
		n.interrupt(t)
		n.start(t, command)
		n.await(t, "http://localhost:13133", "")
		n.runs++
	case strings.HasPrefix(command, "go tool pprof -http="):
		n.awaitFiles(t, command)
		terminal := n.running
		n.running = nil
		n.start(t, command)
		address := regexp.MustCompile(`-http=(\S+)`).FindStringSubmatch(command)[1]
		n.await(t, "http://"+address+"/ui/flamegraph", "compress/flate")
		n.flameGraphs++
		n.interrupt(t)
		n.running = terminal
	default:
		n.awaitFiles(t, command)
		out := n.shell(t, command)
		if strings.Contains(command, "jq") && strings.Trim(out, "0\n") == "" {
			t.Errorf("%s prints %q", command, out)
		}
	}
}

// awaitFiles waits until each pattern of profiles in a command has a file, as somebody
// does who reads on meanwhile.
func (n *newcomer) awaitFiles(t *testing.T, command string) {
	t.Helper()
	for _, pattern := range regexp.MustCompile(`profiles/\S*\*\S*`).FindAllString(command, -1) {
		for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			if found, err := filepath.Glob(filepath.Join(n.directory, pattern)); err != nil || len(found) > 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("there is no %s after %s\n%s", pattern, patience, n.logs)
			}
		}
	}
}

// shell runs a command to its end, which must be a good one.
func (n *newcomer) shell(t *testing.T, command string) string {
	t.Helper()
	var out, errors bytes.Buffer
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
	shell.Dir, shell.Env, shell.Stdout, shell.Stderr = n.directory, n.environment, &out, &errors
	if err := shell.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s\n%s", command, err, &out, &errors, n.logs)
	}
	return out.String()
}

// start runs a command that goes on.
func (n *newcomer) start(t *testing.T, command string) {
	t.Helper()
	n.logs = &logs{}
	shell := exec.Command("bash", "-euo", "pipefail", "-c", command)
	shell.Dir, shell.Env, shell.Stdout, shell.Stderr = n.directory, n.environment, n.logs, n.logs
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	n.running = shell
	t.Cleanup(func() {
		if shell.ProcessState == nil {
			_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) // an error means that it has ended
			_ = shell.Wait()
		}
	})
}

// interrupt is Ctrl+C in the first terminal.
func (n *newcomer) interrupt(t *testing.T) {
	t.Helper()
	if n.running == nil {
		return
	}
	if err := syscall.Kill(-n.running.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = n.running.Wait() // what is interrupted says so
	n.running = nil
}

// await asks until it is answered with 200, and the answer says something.
func (n *newcomer) await(t *testing.T, url, says string) {
	t.Helper()
	answered := "nothing"
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		response, err := http.Get(url)
		if err != nil {
			answered = err.Error()
			continue
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(body), says) {
			return
		}
		answered = fmt.Sprintf("%s, %v: %.200s", response.Status, err, body)
	}
	t.Fatalf("%s answers %s\n%s", url, answered, n.logs)
}
