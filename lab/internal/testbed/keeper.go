package testbed

import (
	"bufio"
	"fmt"
	"sync"
)

// Keeper ends processes when the one that started them dies, by whatever: SIGKILL
// leaves nobody else to do it. It is the process `cabrank-lab keeper`.
//
// Life: StartKeeper; ended by Close. Concurrency: any.
type Keeper struct {
	mu    sync.Mutex
	child *Child
}

// StartKeeper starts one; lab is the path of the program.
func StartKeeper(lab string) (*Keeper, error) {
	child, err := Launch(Program{Command: []string{lab, "keeper"}, Talk: true})
	if err != nil {
		return nil, err
	}
	k := &Keeper{child: child}
	if _, err := bufio.NewReader(child.Out).ReadString('\n'); err != nil { // it ignores signals from here on
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
	fmt.Fprintln(k.child.In, verb, group)
}

// Close ends the keeper, and with it what it has not been told to forget.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.child.In.Close()
	k.mu.Unlock()
	<-k.child.Ended()
	k.child.Out.Close()
}
