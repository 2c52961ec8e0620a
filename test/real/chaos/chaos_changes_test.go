//go:build real || soak

package chaos_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// A changeKind is something that an operator does.
type changeKind string

const (
	changeRoll     changeKind = "cabrank restart"
	changeHangUp   changeKind = "SIGHUP (reload and roll)"
	changeScale    changeKind = "cabrank scale (up, later down)"
	changeReload   changeKind = "cabrank reload"
	changeBadFile  changeKind = "cabrank reload of a bad file"
	changeDrain    changeKind = "cabrank drain of a worker"
	changeNames    changeKind = "change of DNS"
	changeUpgrade  changeKind = "cabrank upgrade"
	changeUpSignal changeKind = "SIGUSR2 (upgrade)"
)

// chaosChanges does what operators do, and remembers how often and how long it
// took. Concurrency: do is called by one goroutine at a time, all else by any.
type chaosChanges struct {
	r        *chaosRun
	operator *harness.Operator
	file     *chaosFile
	random   *rand.Rand
	names    *chaosNames
	wanted   atomic.Int64 // workers; the greater number while it changes
	serving  atomic.Int64 // pid of the cabrank that has the listeners
	counted  chaosCount   // by those that had them before

	mu   sync.Mutex
	done map[changeKind][]time.Duration // guarded by mu
}

// do makes one change and returns when it is done.
func (c *chaosChanges) do(kind changeKind) error {
	began := time.Now()
	err := c.make(kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[kind] = append(c.done[kind], time.Since(began))
	return err
}

func (c *chaosChanges) make(kind changeKind) error {
	switch kind {
	case changeRoll:
		return c.operator.Run(harness.ChangeLimit, "restart")
	case changeHangUp:
		return c.hangUp()
	case changeScale:
		return c.scale()
	case changeReload:
		return errors.Join(c.file.vary(c.random), c.operator.Run(harness.ChangeLimit, "reload"))
	case changeBadFile:
		return c.reloadBadFile()
	case changeDrain:
		return c.drain()
	case changeNames:
		return c.names.change(c.operator)
	case changeUpgrade:
		return c.upgrade(func() error { return c.operator.Run(harness.ChangeLimit, "upgrade") })
	case changeUpSignal:
		return c.upgrade(func() error { return syscall.Kill(c.r.pid(), syscall.SIGUSR2) })
	default:
		return fmt.Errorf("no change of the kind %q", kind)
	}
}

// hangUp has all workers replaced by a signal, which tells nothing back.
func (c *chaosChanges) hangUp() error {
	before, err := c.operator.Status()
	if err != nil {
		return err
	}
	if err := syscall.Kill(before.PID, syscall.SIGHUP); err != nil {
		return err
	}
	return c.operator.Await(harness.ChangeLimit, "the end of the roll", func(s *harness.OperatorStatus) bool {
		return s.Generation > before.Generation && s.Roll != nil && !s.Roll.Running
	})
}

// scale goes up by one or two workers, or back.
func (c *chaosChanges) scale() error {
	before, after := c.wanted.Load(), int64(chaosWorkers)
	if before == chaosWorkers {
		after += 1 + c.random.Int64N(2)
	}
	c.wanted.Store(max(before, after))
	err := errors.Join(
		c.operator.Run(harness.ChangeLimit, "scale", fmt.Sprint(after)),
		c.operator.Await(harness.ChangeLimit, fmt.Sprintf("%d workers", after), func(s *harness.OperatorStatus) bool {
			return s.Wanted == int(after) && len(s.Workers) == int(after)
		}))
	c.wanted.Store(after)
	return err
}

// restore undoes what would show in what cabrank holds.
func (c *chaosChanges) restore() error {
	if c.names != nil {
		if err := c.names.restore(c.operator); err != nil {
			return err
		}
	}
	if c.wanted.Load() == chaosWorkers {
		return nil
	}
	return c.scale()
}

// reloadBadFile holds that a bad file is refused.
func (c *chaosChanges) reloadBadFile() error {
	good, err := c.file.spoil()
	if err != nil {
		return err
	}
	refused := c.operator.Run(harness.ChangeLimit, "reload")
	if refused == nil {
		refused = errors.New("a bad file was not refused")
	} else {
		refused = nil
	}
	return errors.Join(refused, c.file.write(good))
}

// drain has one worker replaced.
func (c *chaosChanges) drain() error {
	s, err := c.operator.Status()
	if err != nil {
		return err
	}
	var ready []string
	for _, w := range s.Workers {
		if w.State == "ready" {
			ready = append(ready, w.Name)
		}
	}
	if len(ready) == 0 {
		return errors.New("no worker is ready")
	}
	return c.operator.Run(harness.ChangeLimit, "drain", ready[c.random.IntN(len(ready))])
}

// upgrade returns when the old cabrank has gone.
func (c *chaosChanges) upgrade(ask func() error) error {
	old, before := c.r.pid(), len(c.r.LogLines(harness.HandedOver))
	began := time.Now()
	c.counted.add(c.r.Cabrank) // the new one begins at 0
	defer func() { c.counted.blind = append(c.counted.blind, [2]time.Time{began, time.Now()}) }()
	c.r.Ended = true // its end is not that of the run
	if err := ask(); err != nil {
		return err
	}
	pid, err := c.successor(old, before)
	if err != nil {
		return err
	}
	c.serving.Store(int64(pid))
	deadline := time.After(harness.ChangeLimit)
	for pause := time.NewTicker(50 * time.Millisecond); harness.Alive(old); {
		select {
		case <-pause.C:
		case <-deadline:
			return fmt.Errorf("the old cabrank, process %d, is still there", old)
		}
	}
	return nil
}

// successor waits for one more line that tells that a process has handed over.
func (c *chaosChanges) successor(old, before int) (pid int, err error) {
	enough := time.After(harness.ChangeLimit)
	for pause := time.NewTicker(50 * time.Millisecond); ; {
		if lines := c.r.LogLines(harness.HandedOver); len(lines) > before {
			return strconv.Atoi(lines[len(lines)-1].Text("successor"))
		}
		select {
		case <-pause.C:
		case <-enough:
			return 0, fmt.Errorf("process %d has not handed over", old)
		}
	}
}

// times returns how long each change took, by kind.
func (c *chaosChanges) times() map[changeKind][]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.done)
}
