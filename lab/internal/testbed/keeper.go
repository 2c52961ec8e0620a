package testbed

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// Keeper ends processes when the one that started them dies, by whatever: SIGKILL
// leaves nobody else to do it. It is the process `cabrank-lab keeper`.
//
// Life: StartKeeper; ended by Close. Concurrency: any.
type Keeper struct {
	cmd *exec.Cmd

	mu sync.Mutex
	in io.WriteCloser
}

// StartKeeper starts one; lab is the path of the program.
func StartKeeper(lab string) (*Keeper, error) {
	k := &Keeper{cmd: exec.Command(lab, "keeper")}
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what ends us by our group must not end it
	in, err := k.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	k.in = in
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it ignores signals from here on
		k.Close()
		return nil, fmt.Errorf("%s keeper has ended: %w", lab, err)
	}
	return k, nil
}

// watch has the keeper end a process group, and forget one that was ended.
func (k *Keeper) watch(group int)  { k.say("add", group) }
func (k *Keeper) forget(group int) { k.say("del", group) }

func (k *Keeper) say(verb string, group int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	fmt.Fprintln(k.in, verb, group)
}

// Close ends the keeper, and with it what it has not been told to forget.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.in.Close()
	k.mu.Unlock()
	k.cmd.Wait() //nolint:errcheck // its exit status is always 0
}
