package scenario

import (
	"time"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/connectcaller"
)

// Arm is one way to do it.
type Arm struct {
	Name, About string
	// Optional arms are left out, with a line that says so, where the front or the
	// command is not installed.
	Optional bool
	Workers  Workers
	Front    Front
	Client   Client
	Gateway  Gateway
}

// Program is a worker that comes with the lab.
type Program string

// The programs. ProgramNone means a command.
const (
	ProgramNone   Program = ""
	ProgramWorker Program = "worker" // sleeps and computes as requests ask: package work
)

// Full is what a worker does with a call when all of its slots are taken.
type Full string

// What a full worker does. FullUnlimited has no slots: all calls run at once.
const (
	FullUnlimited Full = "unlimited"
	FullQueue     Full = "queue"
	FullKeep      Full = "keep"
	FullRefuse    Full = "refuse"
)

// Workers are the workers of an arm, all alike but for Slow.
type Workers struct {
	// Program runs, or Command in Dir: words with {port}, {host}, {addr}, {slots},
	// {worker} and {index} in them, as `cabrank run` fills them in.
	Program Program
	Command []string
	Dir     string
	// Try is a command that succeeds where Command can run, and Install says what to do
	// where it does not; both are empty if nothing is to be tried.
	Try     []string
	Install string
	// Count is how many there are when a block begins.
	Count int
	// Slots is how many calls each runs at a time, Full what it does with more.
	Slots int
	Full  Full
	// CPU is the quota of each in cores, before it is scaled to the machine; 0 is none.
	CPU float64
	// Env is added to the environment: NAME=value.
	Env []string
	// MaxAge is how old connections get before the worker ends them; 0 is no limit.
	MaxAge time.Duration
	// Slow is a worker that is slower than the others.
	Slow Slow
}

// Slow makes a worker slower: a call takes its time, By longer, Times as long.
// It is for the program "worker".
type Slow struct {
	Worker int           // 1 is the first; 0 is none
	By     time.Duration // 0 adds nothing
	Times  float64       // 1 is as it was
}

// FrontKind is what stands between clients and workers.
type FrontKind string

// The fronts; docs/lab-run.md says what each is.
const (
	FrontNone       FrontKind = "none"
	FrontDNS        FrontKind = "dns"
	FrontDNAT       FrontKind = "dnat"
	FrontCabrank    FrontKind = "cabrank"
	FrontHAProxyTCP FrontKind = "haproxy-tcp"
	FrontHAProxy    FrontKind = "haproxy"
	FrontEnvoy      FrontKind = "envoy"
	FrontNginx      FrontKind = "nginx"
	FrontNghttpx    FrontKind = "nghttpx"
	// FrontSimulated has no processes: the same calls in virtual time, by Policy.
	FrontSimulated FrontKind = "simulated"
)

func fronts() []string {
	return []string{
		string(FrontNone), string(FrontDNS), string(FrontDNAT), string(FrontCabrank), string(FrontHAProxyTCP),
		string(FrontHAProxy), string(FrontEnvoy), string(FrontNginx), string(FrontNghttpx), string(FrontSimulated),
	}
}

// Front is what clients connect to.
type Front struct {
	Kind FrontKind
	// Policy is how it chooses a worker, in its own words, such as LEAST_REQUEST;
	// empty is its default.
	Policy string
	// Flags are added to the command line of cabrank, Env to its environment:
	// NAME=value.
	Flags, Env []string
	// Starts says that cabrank starts the workers, in place of being told where they
	// are.
	Starts bool
	// CPU is its quota in cores, before it is scaled; 0 is none.
	CPU float64
	// TTL is that of the records of the name server, in whole seconds.
	TTL time.Duration
}

// Client is how calls get out.
type Client struct {
	// Connections is how calls share them.
	Connections caller.Strategy
	// Processes is how many generators there are; more are used where descriptors
	// ask for it.
	Processes int
	// DNSInterval is how often grpc-go asks a name server at most; 0 is its default.
	DNSInterval time.Duration
	// Way is how calls are written.
	Way connectcaller.Way
}
