package process

import (
	"log/slog"
	"os"
	"os/exec"
	"time"
)

const (
	// KillLimit is how long a process may take to die of KILL. Only a process that is
	// stuck in the kernel takes longer; it is left to the keeper.
	KillLimit = 2 * time.Second
	// restLimit is how long the rest of a group may take to die of KILL.
	restLimit = 500 * time.Millisecond
	restPoll  = 5 * time.Millisecond
)

// Children starts and reaps the children of this program. Nothing else may start any or
// wait for one while it is open (R18).
//
// Shape: New, Open once; LetGo when nothing is started any more, then Close.
//
// Concurrency: all methods may be called from any goroutine. The locks of reaper and leash
// are leaves, but under that of leash the pipe to the keeper is written (at most 100 ms).
type Children struct {
	reaper  *reaper
	spawner *spawner
	leash   *leash
	log     *slog.Logger
}

// New makes Children; it touches nothing outside. The keeper is the subcommand "keeper" of
// the program executable (RunKeeper). No more than most Spawn are under way at a time. Once
// stopping is closed nothing is started any more but what is late.
func New(executable string, most int, stopping <-chan struct{}, log *slog.Logger) *Children {
	r := newReaper()
	return &Children{
		reaper: r, log: log,
		spawner: newSpawner(r, most, stopping),
		leash:   newLeash(executable, r, log),
	}
}

// Open starts the keeper, and the reaping of orphans. The error is that of the keeper,
// without which nothing may be started; Close is called all the same.
func (c *Children) Open() error {
	if err := c.reaper.open(); err != nil {
		c.log.Warn("orphans of workers go to init", "error", err)
	}
	c.spawner.open()
	return c.leash.open()
}

// LetGo ends the keeper, within 2 s. It stays for groups that KILL did not end.
func (c *Children) LetGo() { c.leash.close() }

// Close ends the thread that starts children, and with it, by signal, all that are left.
// It leaves an exec behind that hangs.
func (c *Children) Close() {
	c.spawner.close()
	c.reaper.close()
}

// Keep has the keeper end a group that outlives this program.
func (c *Children) Keep(group Group) { c.leash.add(int(group)) }

// Await returns when a child has exited, and leaves it a zombie: until CleanUp its number,
// and so that of its group, cannot be used again.
func (c *Children) Await(cmd *exec.Cmd) { c.reaper.await(cmd) }

// CleanUp ends the rest of a child's group after its leader has exited, and returns how the
// leader ended. It takes at most half a second. The status is nil if other code took it.
func (c *Children) CleanUp(cmd *exec.Cmd) *os.ProcessState {
	// The leader is still a zombie (Linux), so the number of the group cannot
	// have been used again (R18).
	group := Group(cmd.Process.Pid)
	group.Kill()
	alive := group.Alive()
	for deadline := time.Now().Add(restLimit); alive && time.Now().Before(deadline); {
		time.Sleep(restPoll)
		alive = group.Alive()
	}
	// A group that KILL did not end stays with the keeper.
	if !alive {
		c.leash.del(int(group))
	}
	return c.reaper.collect(cmd)
}

// Launch runs cmd.Start for a program that shall outlive this one: the cabrank that will
// take over. It gets no signal when this process or one of its threads ends, and the
// keeper does not know it. wait returns its exit status; it must be called exactly once.
func (c *Children) Launch(cmd *exec.Cmd) (wait func() *os.ProcessState, err error) {
	if err := c.reaper.start(cmd); err != nil {
		return nil, err
	}
	return func() *os.ProcessState {
		c.reaper.await(cmd)
		return c.reaper.collect(cmd)
	}, nil
}
