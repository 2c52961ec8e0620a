package podnet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Net is a network that is there.
//
// Life: Start; ended by Close. Concurrency: any.
type Net struct {
	cmd   *exec.Cmd
	enter []string

	mu  sync.Mutex // held for a question and its answer
	in  io.WriteCloser
	out *bufio.Reader
}

// Start makes a network. command is the process that holds it, which calls Serve.
//
// Errors: one line that says why there is none.
func Start(command []string) (*Net, error) {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return nil, fmt.Errorf("%w: install the Debian package util-linux", err)
	}
	n := &Net{cmd: exec.Command(command[0], command[1:]...)} //nolint:noctx // it ends with its input
	n.cmd.Stderr = os.Stderr
	n.cmd.SysProcAttr = testbed.NewNetwork()
	n.cmd.SysProcAttr.Setpgid = true // it ends with its input, not by a signal to ours
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.out = bufio.NewReader(out)
	if err := n.cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
			return nil, fmt.Errorf("no network namespace may be made here (%w): run it as root", err)
		}
		return nil, err
	}
	n.enter = []string{nsenter, "--target", strconv.Itoa(n.cmd.Process.Pid), "--net"}
	if n.cmd.SysProcAttr.Cloneflags&syscall.CLONE_NEWUSER != 0 {
		n.enter = append(n.enter, "--user", "--preserve-credentials")
	}
	if err := n.ask(request{}); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Enter is what is put before a command that is to run in the network. It becomes the
// command.
func (n *Net) Enter() []string { return append(append([]string(nil), n.enter...), "--") }

// Set says what is behind the Service from now on.
func (n *Net) Set(p Plan) error { return n.ask(request{Plan: &p}) }

// Ask asks from within whether an address answers.
func (n *Net) Ask(how, addr string) error { return n.ask(request{Ask: addr, How: how}) }

func (n *Net) ask(q request) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	line, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if _, err := n.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the network namespace has ended: %w", err)
	}
	text, err := n.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the network namespace has ended: %w", err)
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}

// Close ends the network, when what was started in it has ended.
func (n *Net) Close() {
	n.in.Close()
	n.cmd.Wait() //nolint:errcheck // nothing depends on how it ended
}
